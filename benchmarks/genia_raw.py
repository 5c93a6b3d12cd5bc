"""Converts a split of GENIA to running text: python benchmarks/genia_raw.py CORPUS.xml.gz SPLIT OUT

SPLIT is a file whose `sent_id` select the sentences; OUT gets their text as in the XML, without the
words of the corpus, so that spandet tokenises it. A title is one line, an abstract is one
paragraph. Entities that do not match spandet's words and sentences are counted.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from spandet import Document, read, write
from spandet.text import CharSpan, Sentence


def main() -> None:
    corpus, split, out = sys.argv[1:]
    wanted = {s.metadata["sent_id"] for document in read(split) for s in document.sentences}
    documents = list(raw_documents(read(corpus, "genia-xml"), wanted))
    write(documents, out, "jsonl")
    print(f"{out}: {counted(documents)}")


def raw_documents(documents: Iterable[Document], wanted: set[str]) -> Iterator[Document]:
    """The wanted sentences of each document that has any, as one running text."""
    for document in documents:
        own = [s for s in document.sentences if s.metadata["sent_id"] in wanted and s.words]
        if own:
            yield raw_document(document, own)


def raw_document(document: Document, sentences: list[Sentence]) -> Document:
    """These sentences, which follow each other, as running text with its entities."""
    text = list(document.text)
    for sentence, following in pairwise(sentences):
        if sentence.metadata.get("part") == following.metadata.get("part"):
            text[following.starts[0] - 1] = " "
    start, end = sentences[0].starts[0], sentences[-1].starts[-1] + len(sentences[-1].words[-1])
    entities = tuple(
        replace(entity, span=CharSpan(entity.span.start - start, entity.span.end - start))
        for entity in document.entities
        if start <= entity.span.start and entity.span.end <= end
    )
    return Document("".join(text[start:end]), entities, document.id)


def counted(documents: Iterable[Document]) -> str:
    """Counts of the documents, and of the entities that match no words of one sentence."""
    texts = sentences = entities = 0
    cut: list[str] = []
    for document in documents:
        texts += 1
        sentences += len(document.sentences)
        entities += len(document.entities)
        cut += (document.text_of(entity) for entity in document.entities_in_words()[1])
    share = len(cut) / max(entities, 1)
    return (
        f"{texts:,} documents, {sentences:,} sentences, {entities:,} entities; "
        f"{len(cut):,} ({share:.2%}) match no words of one sentence, such as {cut[:8]}"
    )


if __name__ == "__main__":
    main()

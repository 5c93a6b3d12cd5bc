"""The table of formats that can be read or written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from spandet.formats import (
    ace,
    brat,
    conll,
    conll2012,
    docbin,
    doccano,
    ere,
    genia_xml,
    germeval,
    jsonl,
    label_studio,
    plain_text,
    prodigy,
    tokens,
)
from spandet.formats.corpus import Format
from spandet.formats.detection import first_keys, is_json_list, root_tag


def _keys(
    *, need: set[str], without: frozenset[str] | set[str] = frozenset(), list_: bool = False
) -> Callable[[str], bool]:
    """Make a test for JSON with these keys in the first record."""

    def matches_head(head: str) -> bool:
        keys = first_keys(head)
        return is_json_list(head) == list_ and need <= keys and not keys & without

    return matches_head


def _either(*tests: Callable[[str], bool]) -> Callable[[str], bool]:
    """Make a test that is true if one of the tests is."""
    return lambda head: any(test(head) for test in tests)


FORMATS: Mapping[str, Format] = {
    "jsonl": Format(
        description="spandet's native format: a document per line, character offsets; lossless",
        suffixes=(".jsonl", ".ndjson"),
        read=jsonl.read,
        document_per="line",
        write=jsonl.write,
        matches_head=_keys(need={"text"}, without={"spans", "label", "labels", "relations"}),
    ),
    "tokens-jsonl": Format(
        description="a sentence per line: tokens, and entities counted in tokens",
        suffixes=(".jsonl", ".ndjson"),
        read=tokens.read_lines,
        write=tokens.write_lines,
        matches_head=_keys(need={"tokens"}, without={"text"}),
    ),
    "tokens-json": Format(
        description="the same as one JSON list, as used by the code of the papers",
        suffixes=(".json",),
        read=tokens.read_list,
        write=tokens.write_list,
        matches_head=_keys(need={"tokens"}, list_=True),
    ),
    "genia-xml": Format(
        description="the GENIA corpus in XML: 5 labels, one per span",
        suffixes=(".xml",),
        read=genia_xml.read,
        matches_head=lambda head: root_tag(head) == "set",
    ),
    "genia-xml-all": Format(
        description="the same with every label of a span",
        variant_of="genia-xml",
        read=partial(genia_xml.read, all_labels=True),
    ),
    "ace": Format(
        description="ACE 2004 and 2005: .apf.xml with .sgm beside it, full mentions",
        suffixes=(ace.SUFFIX,),
        read=ace.read,
        text_suffixes=ace.TEXT_SUFFIXES,
    ),
    "ace-heads": Format(
        description="the same, only the heads of mentions",
        variant_of="ace",
        read=partial(ace.read, heads=True),
    ),
    "ere": Format(
        description="DEFT ERE and TAC KBP: .rich_ere.xml with its source text, full mentions",
        suffixes=ere.SUFFIXES,
        read=ere.read,
        text_suffixes=ere.TEXT_SUFFIXES,
    ),
    "ere-heads": Format(
        description="the same, only the heads of nominal mentions",
        variant_of="ere",
        read=partial(ere.read, heads=True),
    ),
    "doccano": Format(
        description="doccano's sequence labelling, a text per line",
        suffixes=(".jsonl", ".ndjson"),
        read=doccano.read,
        document_per="line",
        write=doccano.write,
        matches_head=_either(
            _keys(need={"text", "label"}, without={"entities", "spans"}),
            _keys(need={"text", "labels"}, without={"entities", "spans"}),
            _keys(need={"text", "entities", "relations"}, without={"spans"}),
        ),
    ),
    "label-studio": Format(
        description="Label Studio's tasks, one JSON list",
        suffixes=(".json",),
        read=label_studio.read,
        write=label_studio.write,
        matches_head=_keys(need={"data"}, without={"tokens"}, list_=True),
    ),
    "prodigy": Format(
        description="Prodigy's examples, a text per line",
        suffixes=(".jsonl", ".ndjson"),
        read=prodigy.read,
        document_per="line",
        write=prodigy.write,
        matches_head=_keys(need={"text", "spans"}),
    ),
    "germeval": Format(
        description="GermEval 2014: a word per line, two layers of BIO tags",
        suffixes=(".tsv",),
        read=germeval.read,
        write=germeval.write,
        layers=2,
        matches_head=germeval.matches_head,
    ),
    "conll": Format(
        description="CoNLL columns; reads BIO, IOB1, BIOES, BMES and BILOU, writes BIO",
        suffixes=(".conll", ".bio", ".tsv"),
        read=conll.read,
        write=conll.write,
        layers=1,
        matches_head=conll.matches_head,
    ),
    "conll-iob1": Format(
        description="the same, writes IOB1",
        variant_of="conll",
        read=conll.read,
        write=partial(conll.write, scheme="iob1"),
        layers=1,
    ),
    "conll-bioes": Format(
        description="the same, writes BIOES",
        variant_of="conll",
        read=conll.read,
        write=partial(conll.write, scheme="bioes"),
        layers=1,
    ),
    "conll-bmes": Format(
        description="the same, writes BMES",
        variant_of="conll",
        read=conll.read,
        write=partial(conll.write, scheme="bmes"),
        layers=1,
    ),
    "conll2012": Format(
        description="CoNLL-2012 (OntoNotes): named entities as brackets in the eleventh column",
        suffixes=("_conll",),
        read=conll2012.read,
        matches_head=conll2012.matches_head,
    ),
    "brat": Format(
        description="brat standoff: .ann with .txt beside it; writes a folder",
        suffixes=(".ann",),
        read=brat.read,
        document_per="file",
        write=brat.write,
        text_suffixes=brat.TEXT_SUFFIXES,
    ),
    "docbin": Format(
        description='spaCy\'s DocBin, entities in doc.spans["sc"]; needs the extra "spacy"',
        suffixes=(".spacy",),
        read=docbin.read,
        write=docbin.write,
    ),
    "docbin-ents": Format(
        description="the same, entities in doc.ents (flat only)",
        variant_of="docbin",
        read=partial(docbin.read, spans_key="ents"),
        write=partial(docbin.write, spans_key="ents"),
        layers=1,
    ),
    "text": Format(
        description="plain text, a document per file",
        suffixes=(".txt",),
        read=plain_text.read,
        document_per="file",
    ),
    "text-lines": Format(
        description="plain text, a document per line",
        variant_of="text",
        read=plain_text.read_lines,
        document_per="line",
    ),
}

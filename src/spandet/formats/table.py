"""The table of formats: what is not here cannot be read or written."""

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
    plain,
    prodigy,
    tokens,
)
from spandet.formats.corpus import Format
from spandet.formats.detection import first_keys, is_json_list, root_tag


def _keys(
    *, need: set[str], without: frozenset[str] | set[str] = frozenset(), list_: bool = False
) -> Callable[[str], bool]:
    """Recognises JSON by the keys of its first record."""

    def knows(head: str) -> bool:
        keys = first_keys(head)
        return is_json_list(head) == list_ and need <= keys and not keys & without

    return knows


def _either(*tests: Callable[[str], bool]) -> Callable[[str], bool]:
    """Recognises what one of the tests recognises."""
    return lambda head: any(test(head) for test in tests)


FORMATS: Mapping[str, Format] = {
    "jsonl": Format(
        about="spandet's own: a document per line, character offsets; loses nothing",
        suffixes=(".jsonl", ".ndjson"),
        read=jsonl.read,
        document_per="line",
        write=jsonl.write,
        knows=_keys(need={"text"}, without={"spans", "label", "labels", "relations"}),
    ),
    "tokens-jsonl": Format(
        about="a sentence per line: tokens, and entities in words",
        suffixes=(".jsonl", ".ndjson"),
        read=tokens.read_lines,
        write=tokens.write_lines,
        knows=_keys(need={"tokens"}, without={"text"}),
    ),
    "tokens-json": Format(
        about="the same as one JSON list, as the papers' code reads it",
        suffixes=(".json",),
        read=tokens.read_list,
        write=tokens.write_list,
        knows=_keys(need={"tokens"}, list_=True),
    ),
    "genia-xml": Format(
        about="the GENIA corpus in XML: 5 labels, one per span",
        suffixes=(".xml",),
        read=genia_xml.read,
        knows=lambda head: root_tag(head) == "set",
    ),
    "genia-xml-all": Format(
        about="the same with every label of a span",
        variant_of="genia-xml",
        read=partial(genia_xml.read, all_labels=True),
    ),
    "ace": Format(
        about="ACE 2004 and 2005: .apf.xml with .sgm beside it, full mentions",
        suffixes=(ace.SUFFIX,),
        read=ace.read,
        beside=ace.TEXT_SUFFIXES,
    ),
    "ace-heads": Format(
        about="the same, only the heads of mentions",
        variant_of="ace",
        read=partial(ace.read, heads=True),
    ),
    "ere": Format(
        about="DEFT ERE and TAC KBP: .rich_ere.xml with its source text, full mentions",
        suffixes=ere.SUFFIXES,
        read=ere.read,
        beside=ere.TEXT_SUFFIXES,
    ),
    "ere-heads": Format(
        about="the same, only the heads of nominal mentions",
        variant_of="ere",
        read=partial(ere.read, heads=True),
    ),
    "doccano": Format(
        about="doccano's sequence labelling, a text per line",
        suffixes=(".jsonl", ".ndjson"),
        read=doccano.read,
        document_per="line",
        write=doccano.write,
        knows=_either(
            _keys(need={"text", "label"}, without={"entities", "spans"}),
            _keys(need={"text", "labels"}, without={"entities", "spans"}),
            _keys(need={"text", "entities", "relations"}, without={"spans"}),
        ),
    ),
    "label-studio": Format(
        about="Label Studio's tasks, one JSON list",
        suffixes=(".json",),
        read=label_studio.read,
        write=label_studio.write,
        knows=_keys(need={"data"}, without={"tokens"}, list_=True),
    ),
    "prodigy": Format(
        about="Prodigy's examples, a text per line",
        suffixes=(".jsonl", ".ndjson"),
        read=prodigy.read,
        document_per="line",
        write=prodigy.write,
        knows=_keys(need={"text", "spans"}),
    ),
    "germeval": Format(
        about="GermEval 2014: a word per line, two layers of BIO tags",
        suffixes=(".tsv",),
        read=germeval.read,
        write=germeval.write,
        layers=2,
        knows=germeval.knows,
    ),
    "conll": Format(
        about="CoNLL columns; reads BIO, IOB1, BIOES, BMES and BILOU, writes BIO",
        suffixes=(".conll", ".bio", ".tsv"),
        read=conll.read,
        write=conll.write,
        layers=1,
        knows=conll.knows,
    ),
    "conll-iob1": Format(
        about="the same, writes IOB1",
        variant_of="conll",
        read=conll.read,
        write=partial(conll.write, scheme="iob1"),
        layers=1,
    ),
    "conll-bioes": Format(
        about="the same, writes BIOES",
        variant_of="conll",
        read=conll.read,
        write=partial(conll.write, scheme="bioes"),
        layers=1,
    ),
    "conll-bmes": Format(
        about="the same, writes BMES",
        variant_of="conll",
        read=conll.read,
        write=partial(conll.write, scheme="bmes"),
        layers=1,
    ),
    "conll2012": Format(
        about="CoNLL-2012 (OntoNotes): named entities as brackets in the eleventh column",
        suffixes=("_conll",),
        read=conll2012.read,
        knows=conll2012.knows,
    ),
    "brat": Format(
        about="brat standoff: .ann with .txt beside it; writes a folder",
        suffixes=(".ann",),
        read=brat.read,
        document_per="file",
        write=brat.write,
        beside=brat.TEXT_SUFFIXES,
    ),
    "docbin": Format(
        about='spaCy\'s DocBin, entities in doc.spans["sc"]; needs the extra "spacy"',
        suffixes=(".spacy",),
        read=docbin.read,
        write=docbin.write,
    ),
    "docbin-ents": Format(
        about="the same, entities in doc.ents (flat only)",
        variant_of="docbin",
        read=partial(docbin.read, spans_key="ents"),
        write=partial(docbin.write, spans_key="ents"),
        layers=1,
    ),
    "text": Format(
        about="plain text, a document per file",
        suffixes=(".txt",),
        read=plain.read,
        document_per="file",
    ),
    "text-lines": Format(
        about="plain text, a document per line",
        variant_of="text",
        read=plain.read_lines,
        document_per="line",
    ),
}

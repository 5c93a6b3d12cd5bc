"""Detection of column formats by the first bytes, as on standard input."""

from __future__ import annotations

import pytest

from spandet.formats import FORMATS


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ("-DOCSTART- -X- O O\n\nZoe NNP B-NP B-PER\n", "conll"),
        ("\ufeff\nZoe\tS-PER\r\nran\tO\r\n", "conll"),
        ("#\tO\n1\tO\n", "conll"),
        ("1\tcell\tO\n", "conll"),
        ("#\thttps://example.org [2011-01-01]\n1\tDie\tO\tO\n", "germeval"),
        ("\ufeff1\tDie Zeit\tB-ORG\tO\r\n", "germeval"),
        ("#begin document (a/b); part 000\na 0 0 x X * - - - - * -\n", "conll2012"),
        ("A text, of one line.\n", None),
        ('{"text": "not O"}\n', "jsonl"),
        ("", None),
    ],
)
def test_the_first_bytes_match_exactly_one_format(head: str, name: str | None) -> None:
    known = [
        key
        for key, row in FORMATS.items()
        if row.matches_head is not None and row.matches_head(head)
    ]
    assert known == ([] if name is None else [name])

"""Decompression bombs: every reader reports an error and uses little memory.

Each test makes a small file that decompresses to 1 GiB, and reads it in a separate process.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from spandet.formats import FORMATS

GIB = 1 << 30
MAX_KB = 600_000

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read from /proc"
)

# Not ru_maxrss, which a child process inherits from its parent.
READ = """
import sys
from spandet.errors import FormatError
{setup}
try:
    for _ in {documents}:
        pass
    print("no error")
except FormatError as error:
    print(error)
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])
"""
LONG = b"a" * (1 << 20)


def endless(path: Path, begin: bytes, again: bytes) -> Path:
    """A gzipped file of 1 GiB: a block is compressed once, then repeated."""
    with path.open("wb") as out:
        out.write(gzip.compress(begin, 1))
        block = gzip.compress(again * max(1, (1 << 24) // len(again)), 1)
        for _ in range(GIB >> 24):
            out.write(block)
    return path


def packed(path: Path) -> Path:
    """A zlib file of 1 GiB, the format of a DocBin."""
    compressor = zlib.compressobj(1)
    blocks = [compressor.compress(bytes(1 << 24)) for _ in range(GIB >> 24)]
    path.write_bytes(b"".join([*blocks, compressor.flush()]))
    return path


def beside(path: Path, other: str, text: str) -> Path:
    (path.parent / other).write_text(text)
    return path


# Variants of a format have other kinds of bombs.
TAG = b'<article><bibliomisc>1</bibliomisc><title><sentence><cons sem="G#cell_type">a</cons>'
BOMBS: dict[str, Callable[[Path], Path]] = {
    "jsonl": lambda at: endless(at / "a.jsonl.gz", b'{"text": "', LONG),
    "tokens-jsonl": lambda at: endless(
        at / "a.jsonl.gz", b"", b'{"doc_id": "1", "tokens": ["' + LONG + b'"]}\n'
    ),
    "tokens-json": lambda at: endless(
        at / "a.json.gz", b"[", b'{"doc_id": "1", "tokens": ["' + LONG + b'"]},\n'
    ),
    "genia-xml": lambda at: endless(at / "a.xml.gz", b"<set>" + TAG, b"<cons>a</cons> "),
    "genia-xml-all": lambda at: endless(at / "a.xml.gz", b'<set a="', LONG),
    "ace": lambda at: endless(at / "a.apf.xml.gz", b'<source_file a="', LONG),
    "ace-heads": lambda at: endless(at / "a.apf.xml.gz", b"<source_file>", b"<entity/>"),
    "ere": lambda at: endless(at / "a.rich_ere.xml.gz", b"<deft_ere>", b"<entity>a"),
    "ere-heads": lambda at: endless(at / "a.rich_ere.xml.gz", b"<", LONG),
    "doccano": lambda at: endless(at / "a.jsonl.gz", b'{"label": [], "text": "', LONG),
    "label-studio": lambda at: endless(at / "a.json.gz", b'[{"data": {"text": "', LONG),
    "prodigy": lambda at: endless(at / "a.jsonl.gz", b'{"spans": [], "text": "', LONG),
    "brat": lambda at: beside(
        endless(at / "a.ann.gz", b"", b"#1\tNote T1\t" + LONG + b"\n"), "a.txt", "a"
    ),
    "conll": lambda at: endless(at / "a.conll.gz", b"-DOCSTART- O\n\n", LONG + b" O\n\n"),
    "conll2012": lambda at: endless(
        at / "a.gz", b"#begin document (1); part 000\n", LONG + b" - 1\n"
    ),
    "germeval": lambda at: endless(at / "a.tsv.gz", b"", b"# " + LONG + b"\n"),
    "text": lambda at: endless(at / "a.txt.gz", b"", LONG),
    "text-lines": lambda at: endless(at / "a.txt.gz", b"", LONG),
    "docbin": lambda at: packed(at / "a.spacy"),
}


def read_alone(setup: str, documents: str, path: Path) -> tuple[str, int]:
    """The output of a reader for a file, and its peak memory in kB."""
    code = READ.format(setup=setup, documents=documents)
    run = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    output, peak_kb = done.stdout.splitlines()
    return output, int(peak_kb)


@pytest.mark.parametrize(
    "name", [name for name, row in FORMATS.items() if row.variant_of is None or name in BOMBS]
)
def test_a_decompression_bomb_is_an_error_and_uses_little_memory(name: str, tmp_path: Path) -> None:
    if name == "docbin":
        pytest.importorskip("spacy")
    path = BOMBS[name](tmp_path)
    documents = f"read(sys.argv[1], {name!r})"
    output, peak_kb = read_alone("from spandet.formats import read", documents, path)
    assert output.startswith(str(path))
    assert "MiB, which is too long to read" in output
    assert peak_kb < MAX_KB


def test_endless_word_vectors(tmp_path: Path) -> None:
    path = endless(tmp_path / "vectors.gz", b"2 3\nthe " + bytes(range(1, 13)), bytes(1 << 20))
    setup = "from spandet.encoding.vector_files import read_vectors"
    output, peak_kb = read_alone(setup, "read_vectors(sys.argv[1], wanted=None).words", path)
    assert output == f"{path}: vector 2 has a word of more than 1 MiB, which is too long to read"
    assert peak_kb < MAX_KB


@pytest.mark.parametrize(
    ("megabytes", "rows", "expected"),
    [(100, 1, ": group 0: a row of more than 64 MiB, which is too long to read"), (8, 256, "")],
)
def test_long_texts_in_parquet(megabytes: int, rows: int, expected: str, tmp_path: Path) -> None:
    """One text that is too long; and 2 GiB of texts that the file stores once."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    texts = pa.DictionaryArray.from_arrays([0] * rows, ["a" * (megabytes << 20)])
    parquet.write_table(pa.table({"text": texts}), path, store_schema=False)
    setup = "from spandet.integrations.parquet import read\nstream = open(sys.argv[1], 'rb')"
    output, peak_kb = read_alone(setup, "read(stream, sys.argv[1], group=0)", path)
    assert output == (f"{path}{expected}" if expected else "no error")
    assert peak_kb < MAX_KB

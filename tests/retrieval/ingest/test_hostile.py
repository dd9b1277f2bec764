"""Files made to harm: each is refused by one sentence, in little memory and time, and the others of its folder are indexed."""

from __future__ import annotations

import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gnothi.errors import InvalidInput
from gnothi.retrieval.ingest.base import START
from gnothi.retrieval.ingest.formats import reader
from tests.retrieval.ingest.office_files import W, make_docx, make_epub, make_odf, make_xlsx, make_zip, w_p

LAUGHS = '<!DOCTYPE a [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9)
) + "]>"  # fmt: skip
OUTSIDE = '<!DOCTYPE a [<!ENTITY j SYSTEM "file:///etc/passwd">]>'


REFERS = f"<w:document {W}><w:p><w:r><w:t>&j;</w:t></w:r></w:p></w:document>"
FAR = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
MANY = '<table:table-cell table:number-columns-repeated="16384"><text:p>x</text:p></table:table-cell>' * 1000
REPEATED = f"<table:table><table:table-row>{MANY}</table:table-row></table:table>"


def document(path: Path, xml: str | bytes) -> Path:
    return make_zip(path, {"word/document.xml": xml})


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def with_sizes(path: Path, unpacked: int) -> Path:
    """Every header of the zip file says that its part unpacks to so much."""
    data = bytearray(path.read_bytes())
    for mark, place in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        at = data.find(mark)
        while at >= 0:
            struct.pack_into("<I", data, at + place, unpacked)
            at = data.find(mark, at + 4)
    path.write_bytes(data)
    return path


def bomb(path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file, file.open("word/document.xml", "w") as part:
        part.write(f"<w:document {W}><w:body>".encode())
        for _ in range(200):
            part.write(w_p("x" * 1000).encode() * 100)
    return path


def bomb_xlsx(path: Path) -> Path:
    return make_xlsx(path, {"A": "<row/>" * 5_000_000})


def protected(path: Path) -> Path:
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000) + "EncryptedPackage".encode("utf-16-le") + bytes(1000))
    return path


def cut(path: Path) -> Path:
    data = make_docx(path, w_p("word " * 1000)).read_bytes()
    path.write_bytes(data[: len(data) // 2])
    return path


def spoilt(path: Path) -> Path:
    data = bytearray(make_docx(path, w_p("".join(map(chr, range(1000, 3000))))).read_bytes())
    at = data.find(b"word/document.xml") + 60
    data[at : at + 40] = bytes(40)
    path.write_bytes(data)
    return path


def nested(path: Path) -> Path:
    return document(path, f"<w:document {W}>" + "<w:tbl><w:tr><w:tc>" * 100_000)


HOSTILE: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "bomb": (".docx", bomb),
    "bomb xlsx": (".xlsx", bomb_xlsx),
    "lying bomb": (".docx", lambda path: with_sizes(bomb(path), 1000)),
    "laughs": (".docx", lambda path: document(path, LAUGHS + REFERS)),
    "laughs odt": (".odt", lambda path: make_zip(path, {"content.xml": f"{LAUGHS}<a b='&j;'/>"})),
    "outside": (".docx", lambda path: document(path, OUTSIDE + REFERS)),
    "protected": (".docx", protected),
    "protected xlsx": (".xlsx", protected),
    "protected odt": (".odt", lambda path: make_odf(path, "<text:p>x</text:p>", manifest="<m><encryption-data/></m>")),
    "cut": (".docx", cut),
    "spoilt": (".docx", spoilt),
    "nested": (".docx", nested),
    "pdf": (".docx", lambda path: written(path, "%PDF-1.4")),
    "empty": (".pptx", lambda path: written(path, "")),
    "another zip": (".docx", lambda path: make_zip(path, {"a.txt": "x"})),
    "another zip xlsx": (".xlsx", lambda path: make_zip(path, {"a.txt": "x"})),
    "no book": (".epub", lambda path: make_zip(path, {"META-INF/container.xml": "<a/>"})),
    "far cell": (".xlsx", lambda path: make_xlsx(path, {"A": FAR})),
    "repeated cells": (".ods", lambda path: make_odf(path, REPEATED, "spreadsheet")),
    "no notebook": (".ipynb", lambda path: written(path, "[1]")),
    "deep notebook": (".ipynb", lambda path: written(path, "[" * 100_000)),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_refused(tmp_path: Path, kind: str) -> None:
    end, make = HOSTILE[kind]
    if end == ".xlsx":
        pytest.importorskip("python_calamine")
    path = make(tmp_path / f"a{end}")
    with pytest.raises(InvalidInput) as refused:
        list(reader(path)(path, "a", 100, START))
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)
    assert "root:" not in str(refused.value)


def test_parts_of_any_name_are_never_written(tmp_path: Path) -> None:
    path = make_epub(tmp_path / "a.epub", ["<p>Dana kept it."])
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("../../outside.txt", "x")
    assert [p.text for step in reader(path)(path, "a", 100, START) for p in step.passages] == ["Dana kept it."]
    assert not (tmp_path.parent.parent / "outside.txt").exists()


MEASURED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
sys.stderr.write(f" {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss}")
sys.exit(code)
"""


@pytest.mark.slow
def test_hostile_files_take_little_memory(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    for kind, (end, make) in HOSTILE.items():
        (tmp_path / "docs" / kind).mkdir(parents=True)
        make(tmp_path / "docs" / kind / f"a{end}")
    (tmp_path / "docs" / "b.txt").write_text("The heron waits.")
    command = [sys.executable, "-m", "gnothi", "index", "build", str(tmp_path / "docs"), "--out", str(tmp_path / "index")]
    done = subprocess.run([sys.executable, "-c", MEASURED, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "1 passage" in done.stdout
    assert f"{len(HOSTILE)} files not readable" in done.stderr
    assert int(done.stderr.split()[-1]) < 600_000  # kB, of the largest process

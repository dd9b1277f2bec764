from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.retrieval.ingest.base import Unreadable
from gnothi.retrieval.ingest.encoding import chunks, detect


def text_of(path: Path) -> str:
    return "".join(text for text, _ in chunks(path, detect(path).name))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file.txt"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_encodings_with_a_mark_and_utf8_are_read_without_a_notice(file: Path, encoding: str) -> None:
    file.write_bytes("Žižek naïve 東京\nsecond\n".encode(encoding))
    assert detect(file).notice == ""
    assert text_of(file) == "Žižek naïve 東京\nsecond\n"


def test_other_bytes_are_read_as_windows_1252_and_reported(file: Path) -> None:
    file.write_bytes("café “quoted”".encode("cp1252"))
    assert "not UTF-8" in detect(file).notice
    assert text_of(file) == "café “quoted”"


def test_a_declared_encoding_is_believed_where_the_bytes_are_not_utf8(file: Path) -> None:
    file.write_bytes("žluťoučký kůň".encode("iso-8859-2"))
    assert detect(file, "ISO-8859-2").name == "iso8859-2"
    assert detect(file, "no-such-encoding").name == "windows-1252"
    file.write_bytes("žluťoučký kůň".encode())
    assert detect(file, "ISO-8859-2").name == "utf-8"


def test_utf8_with_few_broken_bytes_stays_utf8(file: Path) -> None:
    file.write_bytes("naïve Žižek 東京".encode() + b"\xff end")
    assert "1 broken" in detect(file).notice
    assert text_of(file) == "naïve Žižek 東京\ufffd end"


@pytest.mark.parametrize("data", [b"abc\0def", bytes(range(256)) * 40, b"\x01\x02\x03\x04 text"])
def test_binary_files_are_refused(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with pytest.raises(Unreadable, match=r"file\.txt is a binary file"):
        detect(file)


def test_a_missing_file_is_refused(file: Path) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        detect(file)


@given(text=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"], include_characters="\n\r\t"), max_size=200))
def test_utf8_round_trip_with_universal_newlines(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.mktemp("encoding") / "file.txt"
    # Long enough that line ends and characters lie across the boundary of pieces.
    padded = "a" * (65_536 - len(text.encode()) // 2) + text
    file.write_bytes(padded.encode())
    assert text_of(file) == padded.replace("\r\n", "\n").replace("\r", "\n")


def test_an_empty_file_is_text(file: Path) -> None:
    file.write_bytes(b"")
    assert text_of(file) == ""

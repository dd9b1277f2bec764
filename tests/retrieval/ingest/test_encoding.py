from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.retrieval.ingest.base import Unreadable
from gnothi.retrieval.ingest.encoding import chunks, decoded, detect
from tests.messages import refused


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


IMPOSSIBLE = ["utf-16", "utf-16-le", "utf-32", "utf-7", "rot13", "hex", "zlib", "bz2", "idna", "punycode", "unicode_escape"]


@pytest.mark.parametrize("declared", IMPOSSIBLE)
def test_a_declared_encoding_that_cannot_be_meant_is_passed_over(file: Path, declared: str) -> None:
    file.write_bytes("<p>café “quoted”, at length".encode("cp1252"))
    assert detect(file, declared).name == "windows-1252"
    assert text_of(file) == "<p>café “quoted”, at length"


def test_latin_1_is_read_as_browsers_do(file: Path) -> None:
    file.write_bytes("café “quoted”".encode("cp1252"))
    assert detect(file, "ISO-8859-1").name == "cp1252"


@pytest.mark.parametrize(
    ("declared", "written", "text"),
    [
        ("gb2312", "gbk", "朱镕基"),
        ("Shift_JIS", "cp932", "①㈱髙橋"),
        ("x-sjis", "cp932", "①㈱髙橋"),
        ("euc-kr", "cp949", "똠방각하"),
        ("iso-8859-9", "cp1254", "“Işık” 5 €"),
        ("windows-874", "cp874", "“ประภาคาร” …"),
        ("iso-2022-jp", "iso-2022-jp", "灯台"),
    ],
)
def test_a_declared_encoding_is_the_larger_one_that_browsers_read(file: Path, declared: str, written: str, text: str) -> None:
    file.write_bytes(text.encode(written))
    assert "".join(part for part, _ in chunks(file, detect(file, declared).name)) == text
    assert decoded(text.encode(written), declared) == text


JAPANESE = "灯台は海岸に立っていて、毎晩、番人が明かりをともします。東京は日本の首都であり、多くの人が住んでいます。"
OTHERS = {
    "cp1251": "Маяк стоял на берегу моря, и каждый вечер смотритель зажигал огонь.",
    "koi8_r": "Маяк стоял на берегу моря, и каждый вечер смотритель зажигал огонь.",
    "cp1253": "Ο φάρος στέκεται στην ακτή της θάλασσας και κάθε βράδυ ο φύλακας ανάβει το φως.",
    "cp1255": "המגדלור עומד על חוף הים וכל ערב השומר מדליק את האור. ירושלים היא עיר הבירה.",
    "cp1256": "تقف المنارة على شاطئ البحر وفي كل مساء يشعل الحارس الضوء. القاهرة هي عاصمة مصر.",
    "shift_jis": JAPANESE,
    "euc_jp": JAPANESE,
    "gb18030": "灯塔矗立在海边，每天晚上看守人都会点亮灯光。北京是中国的首都，有许多人居住。",
    "big5": "燈塔矗立在海邊，每天晚上看守人都會點亮燈光。台北有許多人居住。",
    "euc_kr": "등대는 해안에 서 있고 매일 저녁 등대지기가 불을 켭니다. 서울은 한국의 수도입니다.",
}


@pytest.mark.parametrize("before", [0, 10, 70_000])
@pytest.mark.parametrize("encoding", OTHERS)
def test_other_letters_are_recognised_and_reported(file: Path, encoding: str, before: int) -> None:
    text = "plain\n" * before + OTHERS[encoding] + "\n" + OTHERS[encoding]
    file.write_bytes(text.encode(encoding))
    assert f"is not UTF-8: read as {encoding}" in detect(file).notice
    assert text_of(file) == text


LATIN = [
    "El niño comió una manzana pequeña mañana por la mañana en España.",
    "Größe und Maß der schönen Straße in München.",
    "Le naïf garçon a mangé une pêche près de la forêt, où l’été s’achève.",
    "A long English text with a single accent: naïve. " * 5,
    "It cost £5 to enter, or 6 €. “Quoted” text — and a dash.",
    "café",
    "© 2020, 20 °C, £5",
    "– “É” …",
]


@pytest.mark.parametrize("text", LATIN)
def test_latin_letters_are_never_taken_for_others(file: Path, text: str) -> None:
    for repeated in (text, f"{text}\n" * 200):
        file.write_bytes(repeated.encode("cp1252"))
        assert detect(file).name == "windows-1252"
        assert text_of(file) == repeated


@given(data=st.binary(max_size=300))
def test_any_bytes_are_text_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.mktemp("encoding") / "file.txt"
    file.write_bytes(data)
    with contextlib.suppress(Unreadable):
        text_of(file)


def test_utf8_with_few_broken_bytes_stays_utf8(file: Path) -> None:
    file.write_bytes("naïve Žižek 東京".encode() + b"\xff end")
    assert "1 broken" in detect(file).notice
    assert text_of(file) == "naïve Žižek 東京\ufffd end"


@pytest.mark.parametrize("data", [b"abc\0\0def", b"a\0b\0c\0", bytes(range(256)) * 40, b"\x01\x02\x03\x04 text"])
def test_binary_files_are_refused(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with refused(Unreadable):
        detect(file)


def test_a_missing_file_is_refused(file: Path) -> None:
    with refused(Unreadable):
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

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.retrieval.ingest.base import START, Step, Unreadable
from gnothi.retrieval.ingest.json_file import read_lines
from gnothi.types import Passage
from tests.messages import refused


def steps(path: Path, text: str | bytes, words: int = 100) -> list[Step]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(read_lines(path, "key", words, START))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "corpus.jsonl"


def test_both_spellings_of_the_id_and_optional_titles(file: Path) -> None:
    lines = '{"_id":"a","title":"T","text":"one"}\n{"id":7,"text":"two","url":"x"}\n\n{"text":"three","title":null}'
    found = [step.passages[0] for step in steps(file, lines)]
    assert found == [Passage("a", "one", "T"), Passage("7", "two", metadata={"url": "x"}), Passage("key#4", "three")]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{bad", "not valid JSON"),
        ("[1]", "got a list, expected an object"),
        ("null", "got null"),
        ('{"id":"a","title":"t"}', "no 'text' (it has id, title)"),
        ('{"id":"a","text":5}', "its 'text' is a number"),
        ('{"id":"a","text":null}', "its 'text' is null"),
        ('{"id":"a","text":"x","title":["t"]}', "its 'title' is a list"),
        ('{"id":true,"text":"x"}', "its id is true or false"),
        ('{"id":1.5,"text":"x"}', "its id is a number"),
        ('{"id":"","text":"x"}', "its id has 0 characters"),
        (f'{{"id":"{"x" * 501}","text":"x"}}', "its id has 501 characters"),
        ("[" * 100_000, "not valid JSON"),
        ("[" * 900 + "]" * 900, "got a list"),
        *(('{"id":"a","text":' + "[" * depth + "]" * depth + "}", "") for depth in (900, 2000, 100_000)),
        ('{"id":' + "9" * 5000 + ',"text":"x"}', "not valid JSON"),
        (b'{"id":"a","text":"caf\xe9"}', "not UTF-8"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_and_the_next_is_read(file: Path, line: str | bytes, says: str) -> None:
    data = line.encode() if isinstance(line, str) else line
    bad, good = steps(file, data + b'\n{"id":"z","text":"fine"}\n')
    assert says in bad.invalid
    assert bad.checkpoint is not None
    assert bad.checkpoint.line == 1
    assert good.passages == (Passage("z", "fine"),)


def test_a_byte_order_mark_is_no_part_of_the_first_line(file: Path) -> None:
    assert steps(file, b'\xef\xbb\xbf{"id":"a","text":"x"}')[0].passages == (Passage("a", "x"),)


def test_a_long_record_is_cut_and_one_of_twice_the_length_is_not(file: Path) -> None:
    sentence = "Ten words stand here in a row without any meaning."
    for count, ids in ((20, ["a"]), (21, ["a#1", "a#2", "a#3"])):
        record = json.dumps({"id": "a", "title": "T", "text": " ".join([sentence] * count)})
        found = steps(file, record)[0].passages
        assert [passage.id for passage in found] == ids
        assert {passage.title for passage in found} == {"T"}
    assert len(steps(file, record, words=0)[0].passages) == 1


def test_records_without_text_are_empty_but_a_title_alone_is_kept(file: Path) -> None:
    first, second = steps(file, '{"id":"a","text":" ","title":""}\n{"id":"b","text":"","title":"Only"}')
    assert first.empty
    assert not first.passages
    assert second.passages == (Passage("b", "", "Only"),)


def test_a_line_too_long_is_invalid(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnothi.retrieval.ingest.json_file.LONGEST_LINE", 64)
    long, good = steps(file, '{"id":"a","text":"' + "x" * 300 + '"}\n{"id":"b","text":"y"}\n')
    assert "longer than" in long.invalid
    assert good.passages == (Passage("b", "y"),)
    assert good.checkpoint is not None
    assert good.checkpoint.line == 2


def test_a_binary_file_is_refused(file: Path) -> None:
    with refused(Unreadable):
        steps(file, b"\x89PNG\0\0\0")


RECORDS = st.lists(
    st.one_of(
        st.builds(lambda i, t, x: json.dumps({"id": str(i), "title": t, "text": x}), st.integers(), st.text(), st.text()),
        st.text(st.characters(exclude_characters="\n\0", exclude_categories=("Cs", "Cc"))),
        st.just(""),
    ),
    max_size=12,
)


@settings(max_examples=settings().max_examples // 3)
@given(lines=RECORDS, end=st.sampled_from(["", "\n", "\r\n"]))
def test_reading_can_go_on_after_any_line(tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: str) -> None:
    file = tmp_path_factory.mktemp("jsonl") / "corpus.jsonl"
    whole = steps(file, ("\r\n" if end == "\r\n" else "\n").join(lines) + end)
    for i, step in enumerate(whole):
        assert step.checkpoint is not None
        assert list(read_lines(file, "key", 100, step.checkpoint)) == whole[i + 1 :]

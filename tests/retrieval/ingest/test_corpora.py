"""Collections in the shapes of others. All content is invented."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gnothi.retrieval.build import build
from gnothi.retrieval.ingest.base import START, NoDocument, Step, Unreadable
from gnothi.retrieval.ingest.corpora import Keys
from gnothi.retrieval.ingest.formats import reader
from gnothi.types import Passage
from tests.messages import refused
from tests.retrieval.documents import contents

TEXT = "The lighthouse was kept by Dana Brisk."
OTHER = "Salted plums keep."


def steps(path: Path, keys: Keys = Keys()) -> list[Step]:  # noqa: B008 - immutable
    return list(reader(path, keys)(path, path.name, 100, START))


def found(path: Path, keys: Keys = Keys()) -> list[Passage]:  # noqa: B008
    return [passage for step in steps(path, keys) for passage in step.passages]


def pairs(path: Path) -> list[tuple[str, str]]:
    return [(passage.title, passage.text) for passage in found(path)]


def written(folder: Path, records: list[Any]) -> Iterator[Path]:
    """The records in each kind of file."""
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    for name, text in (
        ("a.jsonl", "\n".join(map(json.dumps, records))),
        ("a.json", json.dumps(records)),
        ("b.json", json.dumps({"version": 1, "tags": ["x"], "of": {"a": [1]}, "data": records, "end": []}, indent=1)),
    ):
        (folder / name).write_text(text, encoding="utf-8")
        yield folder / name
    parquet.write_table(pyarrow.Table.from_pylist(records), folder / "a.parquet")
    yield folder / "a.parquet"


PLAIN: dict[str, list[Any]] = {
    "BEIR": [{"_id": "1", "title": "Orvel", "text": TEXT, "metadata": {"url": "u"}}],
    "FlashRAG": [{"id": "1", "contents": f'"Orvel"\n{TEXT}'}],
    "KILT": [{"_id": "1", "wikipedia_id": "1", "wikipedia_title": "Orvel", "text": ["Orvel\n", TEXT], "categories": "a,b"}],
    "capitals": [{"ID": "1", "Title": "Orvel", "Text": TEXT}],
    "MS MARCO": [{"docid": 1, "title": "Orvel", "body": TEXT}],
    "pyserini": [{"id": "1", "title": "Orvel", "contents": TEXT}],
    "passages": [{"pid": 1, "page_title": "Orvel", "passage": TEXT}],
}


@pytest.mark.parametrize("name", PLAIN)
def test_passages_of_others(tmp_path: Path, name: str) -> None:
    for path in written(tmp_path, PLAIN[name]):
        (passage,) = found(path)
        assert (passage.id, passage.title, passage.text) == ("1", "Orvel", TEXT)
        assert not passage.metadata.keys() & {"id", "title", "text", "contents", "body", "passage"}


CONTEXTS: dict[str, list[Any]] = {
    "SQuAD": [
        {"id": str(n), "title": "Orvel", "context": text, "question": "Who?", "answers": {"text": ["x"], "answer_start": [0]}}
        for n, text in enumerate([TEXT, TEXT, OTHER])
    ],
    "SQuAD's articles": [
        {"title": "Orvel", "paragraphs": [{"context": TEXT, "qas": [{"id": "1"}]}, {"context": OTHER, "qas": [{"id": "1"}]}]},
        {"title": "Orvel", "paragraphs": [{"context": TEXT, "qas": [{"id": "1"}]}]},
    ],
    "TriviaQA": [
        {"question": "Who?", "entity_pages": {"title": ["Orvel"], "wiki_context": [TEXT]}, "search_results": {"title": ["N"]}},
        {
            "question": "Who?",
            "entity_pages": {"title": [], "wiki_context": []},
            "search_results": {"title": ["Orvel"], "search_context": [OTHER]},
        },
    ],
    "DPR": [
        {
            "question": "Who?",
            "answers": ["x"],
            "positive_ctxs": [{"title": "Orvel", "text": TEXT}],
            "negative_ctxs": [],
            "hard_negative_ctxs": [{"title": "Orvel", "text": OTHER}],
        },
        {
            "question": "Who?",
            "answers": ["x"],
            "positive_ctxs": [{"title": "Orvel", "text": TEXT}],
            "negative_ctxs": [],
            "hard_negative_ctxs": [],
        },
    ],
    "HotpotQA, hub": [
        {
            "question": "Who?",
            "answer": "x",
            "context": {"title": ["Orvel", "Orvel"], "sentences": [[TEXT], [" Salted plums", " keep."]]},
        }
    ],
    "MuSiQue": [
        {
            "question": "Who?",
            "answer": "x",
            "paragraphs": [{"title": "Orvel", "paragraph_text": text} for text in (TEXT, OTHER)],
        }
    ],
    "our lines": [
        {
            "question": "Who?",
            "answers": ["x"],
            "passages": [{"title": "Orvel", "text": text, "supporting": True} for text in (TEXT, OTHER)],
        }
    ],
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_passages_of_question_files_are_taken_once(tmp_path: Path, name: str) -> None:
    for path in written(tmp_path, CONTEXTS[name]):
        assert pairs(path) == [("Orvel", TEXT), ("Orvel", OTHER)]
        assert [passage.id for passage in found(path)] == [passage.id for passage in found(path)]
        assert "the questions are not" in next(step.notice for step in steps(path) if step.notice)


def test_hotpotqa_as_its_authors_write_it(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"question": "Who?", "context": [["Orvel", [TEXT, " " + OTHER]]]}]))
    assert pairs(tmp_path / "a.json") == [("Orvel", f"{TEXT} {OTHER}")]


@pytest.mark.parametrize(
    "record",
    [
        {"question": "Who?", "answer": "x"},
        {"Question": "Who?"},
        {"_id": "q1", "query": "Who?"},
        {"id": "1", "input": "Who?", "output": []},
        {"id": "1", "question": {"stem": "Who?", "choices": []}, "answerKey": "A"},
    ],
)
def test_questions_are_not_indexed_as_text(tmp_path: Path, record: dict[str, Any]) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(record))
    with refused(NoDocument):
        found(tmp_path / "a.jsonl")
    with pytest.raises(NoDocument):
        build([tmp_path / "a.jsonl"], tmp_path / "index")


def test_a_folder_of_beir(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    (corpus / "qrels").mkdir(parents=True)
    (corpus / "corpus.jsonl").write_text(json.dumps({"_id": "d1", "title": "Orvel", "text": TEXT, "metadata": {}}))
    (corpus / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "Who?", "metadata": {}}))
    (corpus / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    (corpus / "default").mkdir()
    (corpus / "default" / "test.jsonl").write_text('{"query-id": "q1", "corpus-id": "d1", "score": 1}')
    (corpus / "settings.json").write_text('{"name": "beir", "tags": ["a"]}')
    report = build([corpus], tmp_path / "index")
    assert set(contents(tmp_path / "index")) == {"d1"}
    assert report.unreadable.count == 0
    assert report.skipped.count == 4
    assert sum("queries" in line for line in report.skipped.first) == 1
    (kept,) = found(corpus / "queries.jsonl", Keys(text="text"))
    assert kept.text == "Who?"


def test_keys_that_the_user_names_win(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        json.dumps({"id": "x", "text": OTHER, "abs": {"long": TEXT}, "name": "Orvel", "key": 7, "question": "Who?"})
    )
    (passage,) = found(path, Keys("abs.long", "name", "key"))
    assert (passage.id, passage.title, passage.text) == ("7", "Orvel", TEXT)
    assert found(path, Keys("text"))[0].id == "x"
    (step,) = steps(path, Keys("absent"))
    assert "no 'absent'" in step.invalid
    for text_key in ("", "abs.long"):
        assert build([path], tmp_path / "index", text_key=text_key).unchanged == 0
    assert {passage.text for passage in contents(tmp_path / "index").values()} == {TEXT}


def test_records_without_a_text_are_rows(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"fish": "Cod", "price": 3, "tags": ["a"], "none": None}))
    (first, *others) = steps(tmp_path / "a.jsonl")
    assert "--text-key" in first.notice
    assert [passage.text for step in others for passage in step.passages] == ["fish: Cod; price: 3"]


def test_a_text_in_utf16_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(json.dumps(PLAIN["BEIR"][0]).encode("utf-16"))
    with refused(Unreadable):
        found(tmp_path / "a.jsonl")
    (tmp_path / "a.json").write_bytes(json.dumps(PLAIN["BEIR"]).encode("utf-16"))
    assert pairs(tmp_path / "a.json") == [("Orvel", TEXT)]


@pytest.mark.parametrize(
    "text",
    ['[{"text": "a"', '[{"text": "a"} {"text": "b"}]', '[{"text": }]', '{"data": [{"text": "a"},]', "[{}" + ",[" * 100_000],
)
def test_broken_json_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with refused(Unreadable):
        found(tmp_path / "a.json")


@pytest.mark.parametrize("text", ["", "[]", "{}", "3", '"x"', '{"a": 1, "b": [1, [2]], "c": {"d": [{}]}}', "[1, 2]"])
def test_json_without_records_is_no_document(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with refused(NoDocument):
        found(tmp_path / "a.json")


RECORDS = st.lists(
    st.fixed_dictionaries(
        {"text": st.text(min_size=1).filter(lambda text: bool(text.strip()))},
        optional={"a": st.integers() | st.floats(allow_nan=False), "b": st.lists(st.none() | st.text(max_size=5), max_size=3)},
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=settings().max_examples // 3)
@given(RECORDS, st.sampled_from([None, 1]), st.booleans())
def test_json_in_pieces_is_the_same_json(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, Any]], indent: int | None, ascii: bool
) -> None:
    from gnothi.retrieval.ingest import encoding, json_file

    path = tmp_path_factory.getbasetemp() / "pieces.json"
    path.write_text(
        json.dumps({"x": [{}][:0], "data": records}, indent=indent, ensure_ascii=ascii),
        encoding="utf-8",
        errors="surrogatepass",
    )
    before = encoding._CHUNK
    try:
        encoding._CHUNK = 7
        assert [one.record for one in json_file._records(path)] == records
    finally:
        encoding._CHUNK = before


def test_a_large_array_is_read_in_pieces(tmp_path: Path) -> None:
    records = [{"id": n, "text": f"{n} " * 50} for n in range(5000)]
    (tmp_path / "a.json").write_text(json.dumps(records))
    read = [step.read for step in steps(tmp_path / "a.json")]
    assert len(read) == 5000
    assert all(a <= b for a, b in pairwise(read))
    assert read[0] < (tmp_path / "a.json").stat().st_size / 5


def test_no_line_is_lost_where_reading_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"id": str(n), "contents": f"T{n}\nText {n}"}) for n in range(4)))
    first = [step for step in steps(path) if step.passages][1]
    assert first.checkpoint is not None
    rest = [p for step in reader(path)(path, "a", 100, first.checkpoint) for p in step.passages]
    assert [(p.id, p.title, p.text) for p in rest] == [("2", "T2", "Text 2"), ("3", "T3", "Text 3")]

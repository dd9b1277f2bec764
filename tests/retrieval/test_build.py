"""Building an index. A build that is killed with SIGKILL at random moments, again and again, ends up as an undisturbed one, and
readers never notice."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from gnothi.errors import IndexUnavailable, InvalidInput, InvalidSetting, MissingDependency
from gnothi.retrieval import build as module
from gnothi.retrieval import left_out
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.build import Progress, build
from gnothi.retrieval.folder import read_manifest
from gnothi.retrieval.ingest.base import Step
from gnothi.retrieval.ingest.formats import FORMATS
from gnothi.retrieval.ledger import FolderLedger
from gnothi.retrieval.sources import LISTED
from gnothi.retrieval.writer import IndexWriter
from gnothi.types import Passage
from tests.messages import refused
from tests.retrieval.documents import contents, made_up, make_pdf, sourced, write_jsonl
from tests.stopping import Stopping, moments


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("The heron waits.")
    (folder / "sub" / "b.md").write_text("# Plums\nSalted plums keep long.\n")
    (folder / "c.html").write_text("<title>Page</title><p>Lighthouse.")
    make_pdf(folder / "d.pdf", [["A page of words."]])
    write_jsonl(folder / "e.jsonl", [Passage("x1", "Jsonl text", "T1"), Passage("x2", "More text")])
    (folder / "f.tsv").write_text("id\ttext\ttitle\n1\tTsv text\tT2\n")
    return folder


ALL = {
    "docs/a.txt#1": Passage("docs/a.txt#1", "The heron waits.", "a"),
    "docs/sub/b.md#1": Passage("docs/sub/b.md#1", "Salted plums keep long.", "Plums"),
    "docs/c.html#1": Passage("docs/c.html#1", "Lighthouse.", "Page"),
    "docs/d.pdf#1": Passage("docs/d.pdf#1", "A page of words.", "d", {"page": 1}),
    "x1": Passage("x1", "Jsonl text", "T1"),
    "x2": Passage("x2", "More text"),
    "1": Passage("1", "Tsv text", "T2"),
}
_FILES = {"x1": "docs/e.jsonl", "x2": "docs/e.jsonl", "1": "docs/f.tsv"}
ALL = {key: sourced(one, _FILES.get(key, key.removesuffix("#1"))) for key, one in ALL.items()}


def touch(path: Path, text: str) -> None:
    """A change that shows, however coarse the clock of the file system."""
    status = path.stat() if path.exists() else None
    path.write_text(text)
    if status:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000))


def test_every_format_of_a_folder_and_nothing_twice(docs: Path, tmp_path: Path) -> None:
    out = tmp_path / "index"
    report = build([docs], out)
    assert contents(out) == ALL
    assert (report.passages, report.added, report.sources, report.unchanged) == (7, 7, 6, 0)
    again = build([docs], out)
    assert contents(out) == ALL
    assert (again.passages, again.added, again.sources, again.unchanged) == (7, 0, 6, 6)


def test_the_index_may_lie_in_the_folder_it_indexes(docs: Path) -> None:
    for _ in range(2):
        report = build([docs], docs / "index")
        assert report.skipped.count == 0
    assert contents(docs / "index") == ALL


def test_a_changed_file_is_replaced_and_a_new_one_added(docs: Path, tmp_path: Path) -> None:
    out = tmp_path / "index"
    touch(docs / "a.txt", "The heron waits. " * 60)
    before = build([docs], out)
    assert before.passages == 8
    touch(docs / "a.txt", "It left.")
    touch(docs / "e.jsonl", '{"id":"x2","text":"More text"}\n{"id":"x3","text":"New"}')
    touch(docs / "g.txt", "New file.")
    report = build([docs], out)
    expected = ALL | {
        "docs/a.txt#1": sourced(Passage("docs/a.txt#1", "It left.", "a"), "docs/a.txt"),
        "x3": sourced(Passage("x3", "New"), "docs/e.jsonl"),
        "docs/g.txt#1": sourced(Passage("docs/g.txt#1", "New file.", "g"), "docs/g.txt"),
    }
    del expected["x1"]
    assert contents(out) == expected
    assert (report.unchanged, report.replaced) == (4, 0)


def test_another_length_of_passages_cuts_again(docs: Path, tmp_path: Path) -> None:
    touch(docs / "a.txt", "One two three four five. Six seven eight nine ten.")
    build([docs], tmp_path / "index")
    report = build([docs], tmp_path / "index", words=5)
    assert report.unchanged == 0
    texts = [passage.text for key, passage in contents(tmp_path / "index").items() if key.startswith("docs/a.txt")]
    assert texts == ["One two three four five.", "Six seven eight nine ten."]
    build([docs], tmp_path / "index", words=0)
    assert contents(tmp_path / "index")["docs/a.txt#1"].text == "One two three four five. Six seven eight nine ten."


def test_sources_add_up_over_several_builds(docs: Path, tmp_path: Path) -> None:
    build([docs / "sub"], tmp_path / "index")
    build([docs / "a.txt", docs / "e.jsonl"], tmp_path / "index")
    assert set(contents(tmp_path / "index")) == {"sub/b.md#1", "a.txt#1", "x1", "x2"}
    report = build([docs], tmp_path / "index")  # known by their place, so not added under a second name
    assert report.unchanged == 3
    assert len(contents(tmp_path / "index")) == 7


def test_files_of_one_name_in_several_places_keep_apart(tmp_path: Path) -> None:
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "notes.txt").write_text(f"From {place}.")
    sources = [tmp_path / "one" / "notes.txt", tmp_path / "two" / "notes.txt"]
    for _ in range(2):
        build(sources, tmp_path / "index")
        texts = {key: passage.text for key, passage in contents(tmp_path / "index").items()}
        assert texts == {"notes.txt#1": "From one.", "two/notes.txt#1": "From two."}


def test_names_that_are_no_text(docs: Path, tmp_path: Path) -> None:
    for name in (b"caf\xe9.txt", b"caf\xe8.txt"):
        (docs / os.fsdecode(name)).write_text("Coffee.")
    for unchanged in (0, 8):
        report = build([docs], tmp_path / "index")
        assert (report.sources, report.unchanged, report.replaced) == (8, unchanged, 0)
    assert set(contents(tmp_path / "index")) - set(ALL) == {r"docs/caf\udce9.txt#1", r"docs/caf\udce8.txt#1"}


def test_a_moved_folder_is_recognised(docs: Path, tmp_path: Path) -> None:
    build([docs], tmp_path / "index")
    (tmp_path / "else").mkdir()
    moved = shutil.move(docs, tmp_path / "else" / "docs")
    report = build([moved], tmp_path / "index")
    assert (report.added, report.unchanged) == (0, 6)
    assert contents(tmp_path / "index") == ALL


def test_an_invalid_line_is_named_what_precedes_it_kept_and_the_rest_indexed_on_demand(tmp_path: Path) -> None:
    source = tmp_path / "corpus.jsonl"
    source.write_text('{"id":"a","text":"x"}\n{oops\n{"id":"b","text":"y"}\n[]\n')
    with refused(InvalidInput):
        build([source], tmp_path / "index")
    assert set(contents(tmp_path / "index")) == {"a"}
    assert not read_manifest(tmp_path / "index").complete
    report = build([source], tmp_path / "index", skip_invalid=True)
    assert set(contents(tmp_path / "index")) == {"a", "b"}
    assert report.added == 1
    assert report.invalid.count == 2
    assert [line.split(", ")[1][:6] for line in report.invalid.first] == ["line 2", "line 4"]
    assert read_manifest(tmp_path / "index").complete
    assert build([source], tmp_path / "index").invalid.count == 2  # still true of the source, though not read again


def test_the_listing_of_invalid_lines_is_short_but_counts_all(tmp_path: Path) -> None:
    source = tmp_path / "corpus.jsonl"
    source.write_text("{\n" * 50)
    report = build([source], tmp_path / "index", skip_invalid=True)
    assert report.invalid.count == 50
    assert len(report.invalid.first) == LISTED
    assert report.passages == 0


def test_unreadable_files_of_a_folder_are_skipped_and_named(docs: Path, tmp_path: Path) -> None:
    (docs / "binary.txt").write_bytes(b"\0\1\2")
    (docs / "broken.pdf").write_bytes(b"nothing")
    (docs / "photo.jpg").write_bytes(b"\xff\xd8")
    (docs / "latin.txt").write_bytes(b"caf\xe9")
    (docs / "empty.txt").write_bytes(b"")
    (docs / "table.docx").write_bytes(b"year\train\n1900\t700\n")
    (docs / "self.html").symlink_to(docs / "self.html")
    (docs / "deep.md").write_text("> " * 3000 + "- " * 3000 + "deep\n\nPlain.\n")
    (docs / "odd.html").write_bytes(b'<meta charset="utf-16"><p>caf\xe9 and plums')
    report = build([docs], tmp_path / "index")
    assert report.skipped.first == [f"{docs / 'photo.jpg'} is of no known format (.jpg)"]
    assert report.unreadable.count == 4
    assert {re.split(" is |, line 1| cannot ", line)[0] for line in report.unreadable.first} == {
        str(docs / name) for name in ("binary.txt", "broken.pdf", "table.docx", "self.html")
    }
    assert {one.path for one in left_out.read(tmp_path / "index") if one.unreadable} == {
        str(docs / name) for name in ("binary.txt", "broken.pdf", "table.docx", "self.html")
    }
    assert any("latin.txt is not UTF-8" in line for line in report.notices.first)
    assert report.empty == 1
    assert contents(tmp_path / "index")["docs/odd.html#1"].text == "café and plums"
    assert "docs/deep.md#1" in contents(tmp_path / "index")
    assert set(ALL) < set(contents(tmp_path / "index"))


def test_a_reader_that_fails_on_a_file_stops_nothing(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Iterator[Step]:
        raise RecursionError("maximum recursion depth exceeded")

    monkeypatch.setitem(FORMATS, ".md", fail)
    report = build([docs], tmp_path / "index")
    assert report.unreadable.count == 1
    assert report.unreadable.first[0].startswith(f"{docs / 'sub' / 'b.md'} cannot be read: maximum recursion depth exceeded.")
    assert set(contents(tmp_path / "index")) == set(ALL) - {"docs/sub/b.md#1"}


@pytest.mark.parametrize("name", ["binary.txt", "binary.jsonl", "binary.tsv", "binary.pdf"])
def test_an_unreadable_file_named_by_the_user_is_an_error(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\0\1\2")
    with pytest.raises(InvalidInput) as raised:
        build([tmp_path / name], tmp_path / "index")
    assert name in str(raised.value)


def test_a_file_that_became_unreadable_keeps_its_passages(docs: Path, tmp_path: Path) -> None:
    build([docs], tmp_path / "index")
    (docs / "a.txt").write_bytes(b"\0\0\0")
    assert build([docs], tmp_path / "index").unreadable.count == 1
    assert contents(tmp_path / "index") == ALL


def test_an_invalid_line_in_a_folder_stops_its_file_alone(docs: Path, tmp_path: Path) -> None:
    (docs / "bad.jsonl").write_text('{"id":"before","text":"x"}\n{oops\n{"id":"after","text":"y"}\n')
    for _ in range(2):
        report = build([docs], tmp_path / "index")
        assert report.unreadable.count == 1
        assert "bad.jsonl, line 2: not valid JSON" in report.unreadable.first[0]
        assert "<--skip-invalid>" in report.unreadable.first[0]
        assert set(contents(tmp_path / "index")) == {*ALL, "before"}
    assert build([docs], tmp_path / "index", skip_invalid=True).unreadable.count == 0
    assert set(contents(tmp_path / "index")) == {*ALL, "before", "after"}


def test_a_format_whose_package_is_missing_stops_nothing(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdfium2", None)
    report = build([docs], tmp_path / "index")
    assert "pip install 'gnothi[documents]'" in report.unreadable.first[0]
    assert set(contents(tmp_path / "index")) == set(ALL) - {"docs/d.pdf#1"}
    with pytest.raises(MissingDependency):
        build([docs / "d.pdf"], tmp_path / "index")


def test_what_may_not_be_read_stops_nothing(docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may be allowed to read everything."""
    opened = Path.open

    def refuse(path: Path, *given: Any, **more: Any) -> Any:
        if path.name == "a.txt":
            raise PermissionError(13, "Permission denied")
        return opened(path, *given, **more)

    monkeypatch.setattr(Path, "open", refuse)
    report = build([docs], tmp_path / "index")
    assert report.unreadable.count == 1
    assert report.unreadable.first[0].startswith(f"{docs / 'a.txt'} cannot be read: Permission denied.")
    assert set(contents(tmp_path / "index")) == set(ALL) - {"docs/a.txt#1"}


def test_one_id_in_two_files_is_counted(tmp_path: Path) -> None:
    first = write_jsonl(tmp_path / "a.jsonl", [Passage("1", "one"), Passage("2", "two")])
    second = write_jsonl(tmp_path / "b.jsonl", [Passage("1", "another one")])
    report = build([first, second], tmp_path / "index")
    assert report.replaced == 1
    assert contents(tmp_path / "index")["1"].text == "another one"


def test_deleted_passages_stay_deleted_until_their_file_changes(docs: Path, tmp_path: Path) -> None:
    build([docs], tmp_path / "index")
    with IndexWriter(tmp_path / "index") as writer:
        writer.delete("x1")
        writer.commit()
    build([docs], tmp_path / "index")
    assert set(contents(tmp_path / "index")) == set(ALL) - {"x1"}


def test_a_missing_source_is_an_error_before_anything_is_made(docs: Path, tmp_path: Path) -> None:
    with refused(InvalidInput):
        build([docs, tmp_path / "gone"], tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_a_negative_length_is_an_error(docs: Path, tmp_path: Path) -> None:
    with refused(InvalidSetting):
        build([docs], tmp_path / "index", words=-1)


def test_progress_ends_at_the_whole(docs: Path, tmp_path: Path) -> None:
    seen: list[Progress] = []
    build([docs], tmp_path / "index", on_progress=seen.append)
    assert [progress.bytes_done for progress in seen] == sorted(progress.bytes_done for progress in seen)
    assert seen[-1].bytes_done == seen[-1].bytes_total > 0
    assert seen[-1].passages == 7


def test_an_interrupt_keeps_what_was_read_and_the_next_build_goes_on(tmp_path: Path) -> None:
    corpus = made_up(1, 500)
    source = write_jsonl(tmp_path / "corpus.jsonl", corpus)

    def stop(progress: Progress) -> None:
        if progress.passages == 200:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build([source], tmp_path / "index", on_progress=stop)
    assert len(contents(tmp_path / "index")) == 200
    report = build([source], tmp_path / "index")
    assert report.added == 300
    assert contents(tmp_path / "index") == {passage.id: sourced(passage, "corpus.jsonl") for passage in corpus}


def test_a_stop_between_index_and_ledger_costs_nothing_but_reading_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = made_up(1, 300)
    source = write_jsonl(tmp_path / "corpus.jsonl", corpus)
    monkeypatch.setattr(module, "_COMMIT_BYTES", 5000)

    class Stop(Exception):
        pass

    with monkeypatch.context() as patch:
        patch.setattr(FolderLedger, "save", Mock(side_effect=Stop))
        with pytest.raises(Stop):
            build([source], tmp_path / "index")
    assert 0 < len(contents(tmp_path / "index")) < 300
    build([source], tmp_path / "index")
    assert contents(tmp_path / "index") == {passage.id: sourced(passage, "corpus.jsonl") for passage in corpus}


def test_a_foreign_folder_is_refused(docs: Path) -> None:
    with refused(IndexUnavailable):
        build([docs / "a.txt"], docs)


def test_the_ledger_may_be_lost(docs: Path, tmp_path: Path) -> None:
    build([docs], tmp_path / "index")
    (tmp_path / "index" / "gnothi-sources.sqlite").unlink()
    report = build([docs], tmp_path / "index")
    assert report.added == 0
    assert contents(tmp_path / "index") == ALL


def test_what_is_gone_from_the_index_is_read_again(docs: Path, tmp_path: Path) -> None:
    build([docs], tmp_path / "index")
    (tmp_path / "index" / "meta.json").unlink()
    report = build([docs], tmp_path / "index")
    assert report.added == len(ALL)
    assert contents(tmp_path / "index") == ALL


def test_a_damaged_ledger_is_said(docs: Path, tmp_path: Path) -> None:
    build([docs], tmp_path / "index")
    (tmp_path / "index" / "gnothi-sources.sqlite").write_bytes(b"not a database" * 100)
    with refused(IndexUnavailable):
        build([docs], tmp_path / "index")
    (tmp_path / "index" / "gnothi-sources.sqlite").unlink()
    assert build([docs], tmp_path / "index").passages == len(ALL)


_HARM = ["stale = '[['", "stale = 7", "stale = '[7]'", "offset = 'x'", "line = 0.5"]


@pytest.mark.parametrize("harm", [*(f"UPDATE sources SET {one}" for one in _HARM), "ALTER TABLE sources DROP COLUMN stale"])
def test_a_ledger_with_odd_content_is_said(docs: Path, tmp_path: Path, harm: str) -> None:
    build([docs], tmp_path / "index")
    database = sqlite3.connect(tmp_path / "index" / "gnothi-sources.sqlite")
    database.execute(harm)
    database.commit()
    database.close()
    with refused(IndexUnavailable):
        build([docs], tmp_path / "index")


KILLS = 3


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    write_jsonl(folder / "corpus.jsonl", made_up(1, 1000))
    for i in range(40):
        (folder / f"note {i}.txt").write_text(f"Note {i}. " * 400)
    return folder


def start(source: Path, out: Path) -> Stopping:
    return Stopping("tests.retrieval.stopping_build", str(source), str(out))


def test_killed_builds_resume_to_the_same_index(source: Path, tmp_path: Path) -> None:
    chance = random.Random(1)
    steps = start(source, tmp_path / "undisturbed").finish()
    expected = contents(tmp_path / "undisturbed")
    out = tmp_path / "killed"
    partial = 0
    for number in moments(steps, KILLS):
        process = start(source, out)
        assert process.go(number)
        process.kill(chance.uniform(0, 0.02))
        if (out / "meta.json").exists():
            assert set(contents(out)) <= set(expected)
            assert len(BM25Index.open(out)) == len(contents(out))
            partial += 0 < len(contents(out)) < len(expected)
    assert partial
    start(source, out).finish()
    assert contents(out) == expected


@pytest.mark.slow
def test_killed_builds_follow_moves_and_deletions(source: Path, tmp_path: Path) -> None:
    chance = random.Random(1)
    notes = source / "notes"
    notes.mkdir()
    for note in source.glob("note 1*.txt"):
        note.rename(notes / note.name)
    build([source], tmp_path / "killed")
    before = contents(tmp_path / "killed")

    write_jsonl(source / "corpus.jsonl", made_up(2, 500) + made_up(1, 750))  # a quarter of the old is gone
    notes.rename(source / "papers")
    for number in range(20, 30):
        (source / f"note {number}.txt").unlink()
    (source / "note 0.txt").rename(source / "note 2.txt")
    (source / "note 3.txt").rename(source / "papers" / "note 3.txt")
    shutil.copytree(tmp_path / "killed", tmp_path / "undisturbed")
    steps = start(source, tmp_path / "undisturbed").finish()
    expected = contents(tmp_path / "undisturbed")
    build([source], tmp_path / "afresh")
    assert expected == contents(tmp_path / "afresh")

    partial = 0
    for number in moments(steps, KILLS):
        process = start(source, tmp_path / "killed")
        assert process.go(number)
        process.kill(chance.uniform(0, 0.02))
        found = contents(tmp_path / "killed")
        assert before.keys() & expected.keys() <= found.keys() <= before.keys() | expected.keys()
        partial += found not in (before, expected)
    assert partial
    start(source, tmp_path / "killed").finish()
    assert contents(tmp_path / "killed") == expected


def test_the_previous_index_stays_readable_while_a_killed_build_adds_to_it(source: Path, tmp_path: Path) -> None:
    chance = random.Random(1)
    out = tmp_path / "index"
    first = write_jsonl(tmp_path / "first.jsonl", [Passage("lighthouse", "The lighthouse of Orvel stands alone.")])
    build([first], out)
    before = contents(out)
    reader = BM25Index.open(out)
    for _ in range(2):
        process = start(source, out)
        for _ in range(chance.randint(1, 6)):
            assert process.go(1)
            assert reader.search_blocking("lighthouse of Orvel", 1)[0].passage.id == "lighthouse"
            assert BM25Index.open(out).get("lighthouse") == before["lighthouse"]
        process.kill(chance.uniform(0, 0.02))
        assert contents(out).items() >= before.items()
    start(source, out).finish()
    assert reader.get("note") is None
    assert len(reader) == len(contents(out)) == len(before) + 1000 + len(list(_notes(out)))


def _notes(out: Path) -> list[str]:
    return [key for key in contents(out) if "note" in key]

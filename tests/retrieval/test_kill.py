"""A build killed with SIGKILL at random moments, again and again, ends up as an undisturbed one; readers never notice."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.build import build
from gnothi.types import Passage
from tests.retrieval.documents import contents, made_up, write_jsonl
from tests.stopping import Stopping, moments

KILLS = 4


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    write_jsonl(folder / "corpus.jsonl", made_up(1, 1500))
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

    write_jsonl(source / "corpus.jsonl", made_up(2, 750) + made_up(1, 1125))  # a quarter of the old is gone
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
    assert len(reader) == len(contents(out)) == len(before) + 1500 + len(list(_notes(out)))


def _notes(out: Path) -> list[str]:
    return [key for key in contents(out) if "note" in key]

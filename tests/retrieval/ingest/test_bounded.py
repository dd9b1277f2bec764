"""A reader in a process of its own: what goes wrong there is a refusal here."""

from __future__ import annotations

from pathlib import Path

import pytest

from gnothi.retrieval.ingest import bounded
from gnothi.retrieval.ingest.base import Block, Unreadable
from tests.messages import refused

READER = "tests.retrieval.ingest.endless"


def ordered(path: Path, what: str) -> Path:
    path.write_text(what)
    return path


@pytest.mark.parametrize("what", ["spin", "memory", "crash", "refuse", "error"])
def test_what_goes_wrong_is_a_refusal_and_the_next_file_is_read(
    tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "SECONDS", 1)
    reading = bounded.blocks(READER, ordered(tmp_path / "a ü.txt", what))
    assert next(reading).text.startswith(what)
    with refused(Unreadable):
        next(reading)
    assert len(list(bounded.blocks(READER, ordered(tmp_path / "b.txt", "well")))) == 1


def test_blocks_come_as_they_were_made(tmp_path: Path) -> None:
    (block,) = bounded.blocks(READER, ordered(tmp_path / "a.txt", "print"))
    assert block == Block("title", "print ä\ufffe?", 3, metadata={"page": 1})


def test_a_file_that_is_left_in_the_middle_ends_its_worker(tmp_path: Path) -> None:
    list(bounded.blocks(READER, ordered(tmp_path / "a.txt", "well")))
    (worker,) = bounded._idle
    reading = bounded.blocks(READER, ordered(tmp_path / "b.txt", "spin"))
    next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert not worker.alive
    assert not bounded._idle

"""What a build into any kind of server must hold to: changes, kills, the command line."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

from gnothi.retrieval.build import build
from gnothi.types import Passage
from tests.retrieval.documents import contents, made_up, write_jsonl
from tests.stopping import Stopping, moments

Run = Callable[..., tuple[int, str, str]]
Read = Callable[[], dict[str, Passage]]
"""Every passage of an index, read without Gnothi."""


def make_sources(folder: Path, passages: int, notes: int, more: tuple[Passage, ...] = ()) -> Path:
    """A folder of a collection, in which one id comes twice, and of notes."""
    folder.mkdir()
    write_jsonl(folder / "corpus.jsonl", [*made_up(1, passages), Passage("s1-3", "Of one id the last counts."), *more])
    for i in range(notes):
        (folder / f"note {i}.txt").write_text(f"Note {i}. " * 400)
    return folder


def check_changes(source: Path, spec: str, folder: Path, read: Read, shorter: int) -> None:
    """The same passages as in a ``folder``, whatever changes; the collection then has ``shorter`` passages."""
    for change in ("nothing", "shorter", "gone", "back"):
        if change == "shorter":
            (source / "note 3.txt").write_text("Shorter.")
            write_jsonl(source / "corpus.jsonl", made_up(1, shorter))
        if change == "gone":
            (source / "note 4.txt").rename(source / "note 40.txt")
        ours, theirs = build([source], spec), build([source], folder)
        assert (ours.passages, ours.added, ours.replaced) == (theirs.passages, theirs.added, theirs.replaced)
        assert read() == contents(folder)


def check_kills(
    source: Path, undisturbed: str, spec: str, folder: Path, read: Read, kills: int, *batch: str, killed: Read
) -> None:
    """Builds that are killed with SIGKILL resume to the passages of a ``folder``. ``killed`` reads what a kill left; ``batch``
    goes to ``stopping_build``."""

    def start(out: str) -> Stopping:
        return Stopping("tests.retrieval.stopping_build", str(source), out, *batch)

    chance = random.Random(1)
    build([source], folder)
    expected = contents(folder)
    partial = 0
    for number in moments(start(undisturbed).finish(), kills):
        process = start(spec)
        assert process.go(number)
        process.kill(chance.uniform(0, 0.02))
        now = killed()
        assert set(now) <= set(expected)
        partial += 0 < len(now) < len(expected)
    assert partial
    start(spec).finish()
    assert read() == expected


def check_command_line(gnothi: Run, folder: Path, spec: str, unreachable: str = "") -> None:
    """Build, search, ask; and, of a server that cannot be reached, what is said."""
    source = write_jsonl(folder / "a.jsonl", [Passage("a", "A heron stands in water.", "Heron")])
    code, out, err = gnothi("index", "build", str(source), "--to", spec)
    assert (code, err) == (0, "")
    assert "1 passage (1 added or changed)" in out
    code, out, _ = gnothi("index", "search", spec, "herons", "--json")
    assert [one["id"] for one in json.loads(out)["results"]] == ["a"]
    code, _, _ = gnothi("ask", "Who?", "--model", "lab", "--method", "rag", "--index", spec, "--json")
    assert code == 0
    if unreachable:
        code, _, err = gnothi("index", "search", unreachable, "herons")
        assert (code, "cannot be reached" in err, "Traceback" in err) == (3, True, False)

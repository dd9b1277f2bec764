"""Six mistakes put into the code on purpose, each of which the campaign has to find."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._shared import say


@dataclass(frozen=True, slots=True)
class Plant:
    """``part`` and ``only`` are where it is looked for; ``says`` begins what the finding says."""

    part: str
    only: str
    says: str
    put_in: Callable[[], None]


def _no_fsync() -> None:
    from gnothi.runs import journal

    def replace_file(path: Path, text: str) -> None:
        temporary = path.with_name(f".{path.name}.new")
        temporary.write_text(text, "utf-8")
        temporary.replace(path)

    journal.replace_file = replace_file


def _swallowed() -> None:
    from gnothi.runs.journal import Journal

    real = Journal.append

    def append(self: Journal, data: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError):
            real(self, data)

    Journal.append = append  # type: ignore[method-assign]


def _doubled() -> None:
    from gnothi.retrieval import analysis
    from gnothi.retrieval.writer import IndexWriter

    real = IndexWriter._put

    def put(self: IndexWriter, passage: Any, origin: str) -> Any:
        found = real(self, passage, origin)
        self._active.add_document(analysis.document(passage, origin))
        return found

    IndexWriter._put = put  # type: ignore[method-assign]


def _escapes() -> None:
    from gnothi.cli import contents, index

    for module in (contents, index):
        vars(module)["clean"] = str


def _joined() -> None:
    from gnothi.graph import graph as folder

    def read_manifest(path: Path) -> folder.Manifest:
        raw = vars(folder)["read_fields"](path, folder.GRAPH)
        return folder.Manifest(**raw)

    folder.read_manifest = read_manifest


def _unlocked() -> None:
    from gnothi.runs import journal

    vars(journal)["hold"] = lambda *_: contextlib.ExitStack()


PLANTS: Mapping[str, Plant] = {
    "dropped fsync": Plant("killed", "eval", "takes a place before it is on the disk", _no_fsync),
    "swallowed error": Plant("world", "full disk: eval", "", _swallowed),
    "double append": Plant("killed", "index", "", _doubled),
    "escape left in": Plant("fuzz", "documents", "steers the terminal", _escapes),
    "path joined unchecked": Plant("fuzz", "graph", "reads outside", _joined),
    "lock ignored": Plant("killed", "eval", "two at once", _unlocked),
}


def campaign(given: argparse.Namespace) -> int:
    """Each mistake in turn, until it is found; exit code 1 where one is not."""
    from benchmarks import faults

    found = {}
    for name, plant in PLANTS.items():
        if given.only and name != given.only:
            continue
        one = argparse.Namespace(**{**vars(given), "part": plant.part, "only": plant.only, "plant": name})
        one.until = plant.says
        rows = faults.run(one)
        at = next((row["trial"] for row in rows if any(said.startswith(plant.says) for said in row["problems"])), None)
        found[name] = {"trials": len(rows), "found_at": at}
        say(f"{name}: {'not found' if at is None else f'found by trial {at}'}")
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return int(any(one["found_at"] is None for one in found.values()))

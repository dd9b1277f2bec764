"""The mutation tests' own tests: what is mutated, that it stays a program, that the draw is even and repeatable."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tools import mutate

SOURCE = '''"""A module."""
from __future__ import annotations
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Gate:
    threshold: float = 0.5

    def fires(self, scores: Sequence[float], limit: int | None = 3) -> bool:
        """Whether – ever so slightly – one is above it."""
        if not scores or limit is None:
            raise ValueError(f"got {len(scores) + 1}")
        kept = [score for score in scores if score > self.threshold]
        note(kept, limit)
        total = max(kept, default=-1.0) * 2 + len(kept) if kept else 0
        return total >= limit
'''


def mutated() -> dict[str, list[str]]:
    """What is done → the lines that come out of it."""
    found: dict[str, list[str]] = {}
    for edit in mutate.edits(SOURCE):
        text = SOURCE[: edit.start] + edit.text + SOURCE[edit.end :]
        ast.parse(text)
        lines = [line.strip() for line, before in zip(text.splitlines(), SOURCE.splitlines(), strict=True) if line != before]
        found.setdefault(edit.what, []).extend(lines)
    return found


def test_every_kind_of_mistake() -> None:
    found = mutated()
    assert found["comparison becomes >="] == ["kept = [score for score in scores if score >= self.threshold]"]
    assert found["comparison becomes <"] == ["kept = [score for score in scores if score < self.threshold]"]
    assert found["comparison becomes >"] == ["return total > limit"]
    assert found["comparison becomes is not"] == ["if not scores or limit is not None:"]
    assert found["becomes and"] == ["if ((not scores) and (limit is None)):"]
    assert found["not or minus dropped"] == [
        "if (scores) or limit is None:",
        "total = max(kept, default=(1.0)) * 2 + len(kept) if kept else 0",
    ]
    assert found["branch never taken"] == ["if False:"]
    assert found["filter dropped"] == ["kept = [score for score in scores if True]"]
    assert found["call dropped"] == ["pass"]
    assert found["first two arguments swapped"] == ["note(limit, kept)"]
    assert found["becomes min"] == ["total = min(kept, default=-1.0) * 2 + len(kept) if kept else 0"]
    assert found["arithmetic becomes -"] == ["total = max(kept, default=-1.0) * 2 - len(kept) if kept else 0"]
    assert found["sides of a conditional swapped"] == ["total = (0 if kept else max(kept, default=-1.0) * 2 + len(kept))"]
    assert found["0.5 becomes 0.75"] == ["threshold: float = 0.75"]
    assert found["2 becomes 3"] == ["total = max(kept, default=-1.0) * 3 + len(kept) if kept else 0"]


def test_what_behaves_alike_is_left_alone() -> None:
    changed = {line for lines in mutated().values() for line in lines}
    assert not any(word in line for line in changed for word in ("@dataclass", "raise", "TYPE_CHECKING", "int | None = 3) ->"))


def test_a_draw_is_even_repeatable_and_can_be_put_in_place(tmp_path: Path) -> None:
    for package in mutate.PACKAGES:
        folder = tmp_path / "src" / "gnothi" / package
        folder.mkdir(parents=True)
        (folder / "gate.py").write_text(SOURCE + f"\n# {package}\n", "utf-8")
    every = mutate.candidates(tmp_path)
    assert len(every) == 3 * len(mutate.edits(SOURCE))
    drawn = mutate.draw(tmp_path, 20, seed=1)
    assert drawn == mutate.draw(tmp_path, 20, seed=1) != mutate.draw(tmp_path, 20, seed=2)
    mutate.write(tmp_path / "places.toml", drawn, "drawn for a test")
    assert mutate.read(tmp_path / "places.toml") == drawn
    for mutation in drawn:
        module = tmp_path / mutation.module
        assert module.read_text("utf-8").count(mutation.old) == 1
        placed = mutate.apply(tmp_path, mutation)
        assert placed == (module, SOURCE + f"\n# {mutation.module.split('/')[2]}\n")
        assert module.read_text("utf-8") != placed[1]
        module.write_text(placed[1], "utf-8")


def test_a_place_is_found_again_where_the_module_moved_and_gone_where_the_code_changed(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "gnothi" / "signals"
    folder.mkdir(parents=True)
    (folder / "moved.py").write_text("a = 1\nb = 2\n", "utf-8")
    there = mutate.Mutation("1", "src/gnothi/signals/gate.py", 1, "1 becomes 2", "a = 1\n", "a = 2\n")
    placed = mutate.apply(tmp_path, there)
    assert placed is not None
    assert (folder / "moved.py").read_text("utf-8") == "a = 2\nb = 2\n"
    assert mutate.apply(tmp_path, there) is None


def test_the_tests_named_after_a_module_come_first() -> None:
    first, *others = mutate.stages(mutate.ROOT, mutate.ROOT / "src/gnothi/methods/seakr.py", rest=False)
    assert first == ["tests/methods/oracles/test_seakr.py", "tests/methods/test_seakr.py"]
    assert others == [["tests/methods"], ["tests/calibration"], ["tests/signals"]]
    (rest,) = mutate.stages(mutate.ROOT, mutate.ROOT / "src/gnothi/methods/seakr.py", rest=True)
    assert "tests/cli" in rest
    assert not {"tests/methods", "tests/methods/steps", "tests/signals", "tests/tools"} & {*rest}


def test_the_report_counts_what_became_of_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = [mutate.Mutation(str(n), "m.py", n, "what", f"a{n}\n", "b\n", "why" if n == 3 else "") for n in range(6)]
    results = {
        "0": {"status": "killed", "by": "a test"},
        "1": {"status": "survived"},
        "2": {"status": "survived", "rest": {"status": "killed"}},
        "3": {"status": "survived", "rest": {"status": "survived"}},
        "4": {"status": "gone"},
    }
    (tmp_path / "out.json").write_text(json.dumps(results))
    mutate.report(made, tmp_path / "out.json")
    shown = capsys.readouterr().out
    assert "1 killed, 1 killed by the rest, 1 survived, 1 equivalent, 1 gone, 1 not tried" in shown
    assert "1 survived: m.py:1, what." in shown
    assert "3 equivalent: m.py:3, what. why" in shown
    assert "a0" not in shown


def test_a_place_can_be_tried_again(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    mutate.forget(out, ["1"])
    out.write_text(json.dumps({"1": {"status": "survived"}, "2": {"status": "killed"}}))
    mutate.forget(out, [])
    mutate.forget(out, ["1", "3"])
    assert json.loads(out.read_text()) == {"2": {"status": "killed"}}


def test_the_places_that_ship_can_be_read() -> None:
    places = mutate.read(mutate.PLACES)
    assert len(places) >= 40
    assert len({place.id for place in places}) == len(places)
    assert all(place.old != place.new for place in places)

"""The campaign of faults in its short form: seeded, and what it finds is no secret."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings

from benchmarks._faults_mutate import VALUES, changed_tree, mutate
from benchmarks.faults import as_lines, main, rows_of, summary
from tests.preloaded import Preloaded

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and limits of Linux")


Campaign = Callable[..., Any]


@pytest.fixture
def campaign(
    preloaded: Preloaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Campaign:
    """What a campaign prints; the processes of its trials are forked from one that has torch."""

    def run(*arguments: str) -> Any:
        monkeypatch.setattr(sys, "executable", str(preloaded.client(tmp_path / "python")))
        monkeypatch.setattr(sys, "argv", ["faults", *arguments, "--json", "--out", str(tmp_path / "out")])
        main()
        return json.loads(capsys.readouterr().out)

    return run


def test_a_change_is_drawn_from_the_seed_alone(tmp_path: Path) -> None:
    made = []
    for name in ("a", "b"):
        file = tmp_path / name / "x.jsonl"
        file.parent.mkdir()
        file.write_text('{"a": 1, "b": [1, 2]}\n{"a": "x"}\n' * 3)
        rng = Random(7)
        told = [mutate(file, rng) for _ in range(3)]
        made.append((told, file.read_bytes()))
    assert made[0] == made[1]
    assert made[0][1] != b'{"a": 1, "b": [1, 2]}\n{"a": "x"}\n' * 3


def test_what_is_drawn_from_stays_as_it_is() -> None:
    """Otherwise a trial would depend on those before it."""
    before = repr(VALUES)
    for number in range(300):
        rng = Random(number)
        tree: Any = {"a": [1, {"b": 2}], "c": "x"}
        for _ in range(3):
            tree = changed_tree(tree, rng)
    assert repr(VALUES) == before


@pytest.mark.parametrize(
    ("part", "only", "told"),
    [
        ("fuzz", "bread", "--only: got bread, expected of: documents; triples;"),
        ("programs", "lab train,bread", "got bread, expected of: train self-knowledge;"),
        ("soak", "bread", "got bread, --part soak has no kinds, so leave it out"),
    ],
)
def test_kinds_that_there_are_not_are_refused(
    part: str, only: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["faults", "--part", part, "--only", only])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert told in said.err


def test_kills_and_signals_are_counted_by_program() -> None:
    row = {"trial": 0, "target": "train", "command": "x", "changed": [], "faults": 3, "code": 0, "problems": []}
    given = argparse.Namespace(seed=1, only="", part="programs")
    rows = [row | {"kills": 2, "signals": [0.5]}, row | {"kills": 0, "signals": []}, row | {"kills": 1, "signals": [1.5, 0.1]}]
    document = summary("programs", rows, given)
    assert document["stops_by_target"] == {"train": {"kills": 3, "signals": 3, "slowest_s": 1.5}}
    assert "| train | 3 | 3 | 1.5 |" in as_lines(document)
    assert summary("fuzz", [row], given)["stops_by_target"] == {}


@pytest.mark.parametrize(
    ("end", "silence", "problem"),
    [
        ("", 120.0, None),
        ("os._exit(7)", 120.0, "dies: exit code 7"),
        ("time.sleep(600)", 0.1, "hangs: nothing stops it"),
    ],
)
def test_a_process_that_says_much_is_not_held_up(end: str, silence: float, problem: str | None, tmp_path: Path) -> None:
    """Libraries in other languages write to stderr themselves: a full pipe would hold them up, as if a trial hung."""
    lines = "".join(f"{json.dumps(row)}\n" for row in ({"ready": True}, {"trial": 4, "problems": []}))
    told = f"sys.stderr.write('x' * 999_999 + '\\nlast words')\nsys.stderr.flush()\nos.write(1, {lines.encode()!r})\n"
    with (tmp_path / "said").open("w+b") as said:
        process = subprocess.Popen(
            [sys.executable, "-c", f"import os, sys, time\n{told}{end}"], stdout=subprocess.PIPE, stderr=said
        )
        with process:
            first, *others = rows_of(process, said, 4, time.monotonic() + 250, silence)
            process.kill()
    assert first == {"trial": 4, "problems": []}
    found = [(row["trial"], row["problems"], row["said"]) for row in others]
    assert found == ([(5, [problem], "last words")] if problem else [])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("part", "trials"),
    [
        ("fuzz", 30),
        ("api", 30),
        ("remote", 1),
        ("killed", 4),
        ("stopped", 4),
        ("together", 3),
        ("world", 4),
    ],
)
def test_short_form_finds_nothing(part: str, trials: int, campaign: Campaign) -> None:
    """Always the same trials; by `make test-long` others, and more of them."""
    long = settings.get_current_profile_name() == "long"
    given = {"trials": trials * 20 if long else trials, "seed": Random().randrange(10**6) if long else 15}
    numbers = [str(part) for name, value in given.items() for part in (f"--{name}", value)]
    found = campaign("--part", part, "--minutes", "60", *numbers)
    assert found["trials"] == given["trials"]
    assert {name: one for name, one in found["findings"].items() if one["confirmed"]} == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "plant",
    [
        pytest.param("dropped fsync", marks=pytest.mark.long),
        "swallowed error",
        "double append",
        pytest.param("lock ignored", marks=pytest.mark.long),
    ],
)
def test_a_planted_mistake_is_found(plant: str, campaign: Campaign) -> None:
    limits = ("--minutes", "60", "--trials", "100")
    found = campaign("--part", "planted", "--only", plant, *limits, "--seed", "1")
    assert found[plant]["found_at"] is not None

"""What the taught benchmark asks and in which order: facts by grade, splits, libraries, and the commands of ``gnothi``."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks._real_plan import JUDGED, METRIC, PRICE, SPLITS, Command, passages
from benchmarks._taught_facts import GRADES, LIBRARIES, PARTS, Fact, facts, graded, library
from benchmarks._taught_teach import Teaching
from benchmarks.real_self_knowledge import SETTINGS, TRAINING

FROM_MEMORY = ("panel", "direct", "cot")
"""Methods that search nothing: run once for all libraries. The panel's answers from memory are those of ``direct``."""
CHOSEN = {
    "best_signal": ("compose", ()),
    "probe_gate": ("compose", ("gate=probe",)),
    "cascade": ("cascade", ()),
    "seakr": ("seakr", ()),
    "seakr_simple": ("seakr", ("form=simple",)),
    "keqa": ("keqa", ()),
}
"""Row → method, settings; the threshold of each is chosen on the calibration questions."""
AS_THEY_ARE = ("flare", "skill_rag", "adaptive_rag", "ircot", "dragin")
ASKED = ("semantic_entropy", "verbalised")
"""Signals that ask further questions: each measured in a run of its own, which searches nothing."""
METHODS = (*CHOSEN, *AS_THEY_ARE, JUDGED, *ASKED)
SHARES = {"training": 1, "calibration": 2, "test": 2}
"""How the facts of a grade are dealt to the splits."""


@dataclass(frozen=True)
class Plan:
    """``source``: the model that is taught. ``size``: facts of each grade and part. ``every``: methods get every so-manieth
    question, memory and ``rag`` all. ``extra``: further arguments of every command that opens the taught model."""

    data: Path
    out: Path
    source: str
    seed: int
    size: int
    parts: tuple[str, ...] = tuple(PARTS)
    libraries: tuple[str, ...] = LIBRARIES
    methods: tuple[str, ...] = METHODS
    extra: tuple[str, ...] = ()
    every: int = 3
    teaching: Teaching = field(default_factory=Teaching)

    @property
    def folder(self) -> Path:
        return self.out / f"seed-{self.seed}"

    def facts(self) -> dict[str, tuple[list[Fact], dict[str, int]]]:
        """Part → its facts, and the grades of those that take part."""
        found = {}
        for part in self.parts:
            all_facts = facts(self.data, part)
            found[part] = (all_facts, graded(all_facts, self.size, self.seed))
        return found


def prepare(plan: Plan) -> None:
    """Write the splits, all parts together, and the passages of each library; what stands there already has to be the same."""
    told = plan.facts()
    dealt: dict[str, list[dict[str, Any]]] = {name: [] for name in SPLITS}
    for part, (all_facts, grades) in told.items():
        for name, lines in splits(part, all_facts, grades).items():
            dealt[name] += lines
    for name, lines in dealt.items():
        _write(plan.folder / f"{name}.jsonl", lines)
        _write(plan.folder / f"some-{name}.jsonl", lines[:: plan.every])
    everyone = [fact for all_facts, grades in told.values() for fact in all_facts if fact.id in grades]
    found = list(passages(plan.data))
    for kind in plan.libraries:
        _write(plan.folder / kind / "passages.jsonl", library(kind, everyone, found, plan.seed))


def splits(part: str, all_facts: Sequence[Fact], grades: Mapping[str, int]) -> dict[str, list[dict[str, Any]]]:
    """Disjoint splits, each with the same share of every grade."""
    by_grade: defaultdict[int, list[Fact]] = defaultdict(list)
    known = {fact.id: fact for fact in all_facts}
    for name, grade in grades.items():
        by_grade[grade].append(known[name])
    whole = sum(SHARES.values())
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in SPLITS}
    for grade in GRADES:
        mine, begun = by_grade[grade], 0
        for place, name in enumerate(SPLITS):
            end = len(mine) * sum(list(SHARES.values())[: place + 1]) // whole
            found[name] += [_line(part, fact, grade) for fact in mine[begun:end]]
            begun = end
    return found


def _line(part: str, fact: Fact, grade: int) -> dict[str, Any]:
    told = {"part": part, "taught": grade, "popularity": fact.views}
    return {"id": fact.id, "question": fact.question, "answers": list(fact.answers), "kind": part, "metadata": told}


def _write(path: Path, lines: Iterable[Mapping[str, Any]]) -> None:
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    if path.is_file() and path.read_text("utf-8") != text:
        sys.exit(f"{path} holds other lines: got another --size or other facts than before; give another --out")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def commands(plan: Plan, best: Mapping[str, tuple[str, float]]) -> Iterator[tuple[str, Command]]:
    """(what for, arguments of ``gnothi``) in order. ``best``: library → the signal that gates ``best_signal``, and its
    threshold, once they are known."""
    folder = plan.folder
    opened = ["--model", str(folder / "teaching" / "model"), *plan.extra]
    for kind in plan.libraries:
        yield f"index {kind}", ["index", "build", str(folder / kind / "passages.jsonl"), "--out", str(folder / kind / "index")]
    probe = folder / "probe"
    learning = [str(folder / "training.jsonl"), *opened, "--out", str(probe)]
    yield "probe", ["train", "probe", *learning, "--set", f"metric={METRIC}", "--set", "reason=false"]
    learnt = ["--set", f"panel.signal.probe={probe}"] if _there(probe) else []
    from_memory = ["--method", ",".join(FROM_MEMORY), *opened, "--set", "panel.reason=false", *learnt]
    for name in ("calibration", "test"):
        yield f"memory {name}", ["eval", str(folder / f"{name}.jsonl"), *from_memory, "--out", str(folder / f"memory-{name}")]
    for kind in plan.libraries:
        asked = [*opened, "--index", str(folder / kind / "index")]
        for name in ("calibration", "test"):
            out = str(folder / kind / f"rag-{name}")
            yield f"rag {kind} {name}", ["eval", str(folder / f"{name}.jsonl"), "--method", "rag", *asked, "--out", out]
    for row in plan.methods if _there(probe) else (name for name in plan.methods if name != "probe_gate"):
        if row in ASKED:
            measuring = ["--method", "panel", *opened, "--set", f"signal={row}", "--set", "reason=false"]
            yield f"signal {row}", ["eval", str(folder / "some-test.jsonl"), *measuring, "--out", str(folder / row)]
            continue
        for kind in plan.libraries:
            yield from _row(plan, kind, row, opened, best)


def _there(probe: Path) -> bool:
    """Where the model knows too little, or too much, none can be trained."""
    return (probe / "probe.json").is_file()


def _row(
    plan: Plan, kind: str, row: str, opened: Sequence[str], best: Mapping[str, tuple[str, float]]
) -> Iterator[tuple[str, Command]]:
    folder, what = plan.folder, f"{row} {kind}"
    asked = [*opened, "--index", str(folder / kind / "index")]
    test, calibration = (str(folder / f"some-{name}.jsonl") for name in ("test", "calibration"))
    out = str(folder / kind / row)
    method, settings = CHOSEN.get(row, ("skill_rag" if row == JUDGED else row, ()))
    more = [word for one in settings for word in ("--set", one)]
    weighed = ["--search-cost", str(PRICE), "--metric", METRIC]
    if row == "best_signal":
        signal, threshold = best.get(kind, ("SIGNAL", 0.0))
        more += ["--set", f"gate={signal}", "--set", f"gate_threshold={threshold!r}"]
    if row == "probe_gate" or (row == "best_signal" and best.get(kind, ("",))[0] in ("probe", "question")):
        more += ["--set", f"signal.probe={plan.folder / 'probe'}", "--set", "reason=false"]
    if row == JUDGED:
        judge, how = str(folder / "judge"), {**SETTINGS, **TRAINING, "seed": plan.seed}
        learning = [word for key, value in how.items() for word in ("--set", f"{key}={value}")]
        split = str(folder / "training.jsonl")
        yield "judge", ["train", "self-knowledge", split, *opened, *learning, "--out", judge]
        more += ["--set", f"judge={judge}"]
    if row == "adaptive_rag":
        classifier, run = str(folder / kind / "classifier"), str(folder / kind / "outcomes")
        yield f"outcomes {kind}", ["eval", calibration, "--method", "cot,rag,ircot", *asked, "--out", run]
        yield f"classifier {kind}", ["train", "complexity", run, "--set", f"metric={METRIC}", "--out", classifier]
        more += ["--set", f"classifier={classifier}"]
    if row == "cascade":
        gate, run, every = str(folder / kind / "gate"), str(folder / kind / "recorded"), str(folder / "calibration.jsonl")
        yield f"stages {kind}", ["eval", every, "--method", "direct,cascade", *asked, "--out", run]
        yield f"gate {kind}", ["calibrate", "--learn", run, *weighed, "--out", gate]
        more += ["--set", f"learned={gate}"]
    if row in ("seakr", "seakr_simple", "keqa"):
        file = str(folder / kind / f"{row}.toml")
        yield f"threshold of {what}", ["calibrate", calibration, "--method", method, *asked, *more, *weighed, "--out", file]
        more += ["--calibration", file]
    yield what, ["eval", test, "--method", method, *asked, *more, "--out", out]

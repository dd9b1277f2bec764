"""Tables of the taught benchmark, from its run folders; questions of all seeds together, thresholds chosen seed by seed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from benchmarks._real_plan import METRIC, PRICE
from benchmarks._real_tables import SPLITS, TARGETS, _figure, _interval
from benchmarks._shared import table
from benchmarks._taught_facts import GRADES
from benchmarks._taught_plan import ASKED, METHODS, Plan
from benchmarks.guarantee import measure
from gnothi.calibration.compare import read
from gnothi.calibration.replay import Floats, Mask
from gnothi.runs.folder import read_rows
from gnothi.runs.rows import Row, group
from gnothi.signals import registry
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.stats.frontier import at, frontier, gap_closed, oracle
from gnothi.stats.intervals import mean_interval
from gnothi.stats.logistic import fit_logistic
from gnothi.stats.paired import paired_test

SPENT = "processor"
"""The file of a run's processor seconds: a line for each time that it was begun or gone on with."""
COMBINED = "all signals"
BEST = "best signal"


@dataclass(frozen=True)
class Measurements:
    """Questions of one seed and split. Arrays have shape (n,): the data set, how often each was taught, its subject's views,
    whether memory is right; ``signals`` are higher where the model is less certain. ``answered``: tokens, read and written, of
    the answer from memory; ``tokens``: with those of each signal."""

    ids: tuple[str, ...]
    part: Any
    taught: Floats
    views: Floats
    never: Floats
    answered: Floats
    signals: dict[str, Floats]
    tokens: dict[str, Floats]

    def where(self, mask: Mask) -> Measurements:
        """The questions of a mask."""
        names = tuple(name for name, one in zip(self.ids, mask, strict=True) if one)
        whole = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "ids"}
        cut: dict[str, Any] = {
            key: {name: values[mask] for name, values in one.items()} if isinstance(one, dict) else one[mask]
            for key, one in whole.items()
        }
        return Measurements(ids=names, **cut)


def _times(grade: int) -> str:
    return "once" if grade == 1 else f"{grade} times"


def measurements(plan: Plan, split: str) -> Measurements:
    folder = plan.folder / f"memory-{split}"
    measured = read(folder, METRIC, "panel", "direct")
    lines = map(json.loads, (plan.folder / f"{split}.jsonl").read_text("utf-8").splitlines())
    about = {line["id"]: line["metadata"] for line in lines}
    by_method = group(read_rows(folder))
    panel, direct = ({row.question_id: row for row in by_method[name]} for name in ("panel", "direct"))
    answered = np.array([_tokens(direct[name].cost) for name in measured.questions])
    signals = {one.name: one.values for one in measured.signals if one.name in registry.names()}
    beside = {name: np.array([_tokens(panel[one].signals[name]) for one in measured.questions]) for name in signals}
    return Measurements(
        ids=measured.questions,
        part=np.array([about[name]["part"] for name in measured.questions]),
        taught=np.array([about[name]["taught"] for name in measured.questions], dtype=np.float64),
        views=np.array([about[name]["popularity"] for name in measured.questions], dtype=np.float64),
        never=measured.never,
        answered=answered,
        signals=signals,
        tokens={name: answered + more for name, more in beside.items()},
    )


def _tokens(cost: Mapping[str, float]) -> float:
    return cost["prompt_tokens"] + cost["generated_tokens"]


class Ran(NamedTuple):
    """A run on the questions of a split, arrays of shape (n,): not a number where it failed."""

    quality: Floats
    searches: Floats
    tokens: Floats


def ran(plan: Plan, kind: str, run: str, ids: Sequence[str]) -> Ran:
    rows = {row.question_id: row for row in rows_of(plan, kind, run) if not row.failed}
    lines = [
        (rows[name].metrics[METRIC], rows[name].cost["retrievals"], _tokens(rows[name].cost))
        if name in rows
        else (np.nan, np.nan, np.nan)
        for name in ids
    ]
    return Ran(*np.array(lines, dtype=np.float64).reshape(-1, 3).T)


def rows_of(plan: Plan, kind: str, run: str) -> list[Row]:
    (found,) = group(read_rows(plan.folder / kind / run)).values()
    return found


def best_signal(plan: Plan, kind: str) -> tuple[str, float]:
    """The signal, and its threshold, that come to the most on the calibration questions, a search costing PRICE."""
    mine, always = with_rag(plan, kind, "calibration")
    return chosen(mine.signals, mine.never, always.quality)


def with_rag(plan: Plan, kind: str, split: str, part: str = "") -> tuple[Measurements, Ran]:
    """The questions that rag did not fail on; ``part`` alone, where one is given."""
    mine = measurements(plan, split)
    always = ran(plan, kind, f"rag-{split}", mine.ids)
    kept = np.isfinite(always.quality) & ((mine.part == part) if part else True)
    return mine.where(kept), Ran(*(values[kept] for values in always))


def chosen(signals: Mapping[str, Floats], never: Floats, always: Floats) -> tuple[str, float]:
    points = {name: frontier(values, never, always).best(PRICE) for name, values in signals.items()}
    name = max(points, key=lambda one: points[one].accuracy - PRICE * points[one].retrieval_rate)
    return name, float(points[name].threshold)


# --- the page --------------------------------------------------------------------------------------------------------


def page(plans: Sequence[Plan]) -> Iterator[str]:
    for title, lines in (
        ("Memory by grade", by_grade),
        ("Methods", methods),
        ("Signals", signals),
        ("Thresholds of one data set on another", carried),
        ("The promise of --target-error", promises),
        ("By views", by_views),
    ):
        yield f"## {title}"
        yield ""
        yield from lines(plans)
        yield ""


def _finished(plan: Plan, kind: str, run: str) -> bool:
    return (plan.folder / kind / run / "done").is_file()


def ready(plans: Sequence[Plan], kind: str) -> list[Plan]:
    """Those that never and always are done of."""
    runs = ("memory-test", "memory-calibration")
    return [
        plan
        for plan in plans
        if kind in plan.libraries and all((plan.folder / run / "done").is_file() for run in runs)
        if all(_finished(plan, kind, run) for run in ("rag-test", "rag-calibration"))
    ]


def kinds(plans: Sequence[Plan]) -> list[str]:
    return [kind for kind in plans[0].libraries if ready(plans, kind)]


def by_grade(plans: Sequence[Plan]) -> list[str]:
    """Never, always, the gate and the oracle, by how often an epoch held the fact."""
    parts = plans[0].parts
    header = ["library", "", *map(_times, GRADES), "all", *parts]
    lines = []
    for place, kind in enumerate(kinds(plans)):
        ran_both = [with_rag(plan, kind, "test") for plan in ready(plans, kind)]
        part, taught, never, always = _joined([(mine.part, mine.taught, mine.never, rag.quality) for mine, rag in ran_both])
        found = {"never": never} if place == 0 else {}
        found |= {"always": always, "gate": gated(plans, kind)[BEST].ours, "oracle": oracle(never, always)}
        for name, values in found.items():
            cells = [float(values[taught == grade].mean()) for grade in GRADES]
            cells += [float(values.mean()), *(float(values[part == one].mean()) for one in parts)]
            lines.append(["" if name == "never" else kind, name, *map(_figure, cells)])
    return table(header, lines)


class Gated(NamedTuple):
    """A gate on test questions, arrays of shape (n,): what it searched for, what came of it, the two ends, its tokens."""

    searched: Floats
    ours: Floats
    never: Floats
    always: Floats
    tokens: Floats


def gated(plans: Sequence[Plan], kind: str) -> dict[str, Gated]:
    """Signal → its gate. Signal and threshold were chosen on the calibration questions of the same seed; "all signals" is a
    logistic regression of them, fitted on the same questions."""
    found: dict[str, list[Gated]] = {}
    for plan in ready(plans, kind):
        (learnt, before), (test, after) = (with_rag(plan, kind, split) for split in ("calibration", "test"))
        names = [name for name in learnt.signals if name in test.signals]
        scores = {name: (learnt.signals[name], test.signals[name], test.tokens[name]) for name in names}
        best, _ = chosen(learnt.signals, learnt.never, before.quality)
        combined = fit_logistic(_features(learnt, names), learnt.never < 1)
        every = test.answered + sum(test.tokens[name] - test.answered for name in names)
        scores[COMBINED] = (combined(_features(learnt, names)), combined(_features(test, names)), every)
        for name, (mine, theirs, paid) in {BEST: scores[best], **scores}.items():
            threshold = frontier(mine, learnt.never, before.quality).best(PRICE).threshold
            searched, ours = at(threshold, theirs, test.never, after.quality)
            one = Gated(searched.astype(np.float64), ours, test.never, after.quality, paid + searched * after.tokens)
            found.setdefault(name, []).append(one)
    return {name: Gated(*map(np.concatenate, zip(*runs, strict=True))) for name, runs in found.items()}


def _features(mine: Measurements, names: Sequence[str]) -> Floats:
    """Signals as columns; what could not be measured counts as the least certain."""
    columns = [mine.signals[name] for name in names]
    return np.stack([np.where(np.isfinite(one), one, one[np.isfinite(one)].max()) for one in columns], axis=1)


def methods(plans: Sequence[Plan]) -> Iterator[str]:
    header = [
        "method",
        "n",
        "accuracy",
        "95% interval",
        "searches",
        "tokens",
        "gap closed",
        "95% interval",
        "p against rag",
        "s",
    ]
    for kind in kinds(plans):
        found = [with_rag(plan, kind, "test") for plan in ready(plans, kind)]
        never, answered, always, paid = _joined([(mine.never, mine.answered, rag.quality, rag.tokens) for mine, rag in found])
        yield f"### {kind}"
        yield ""
        lines = [
            ["never", *_line(never, never, always, 0.0, float(answered.mean()))],
            ["always (rag)", *_line(always, never, always, 1.0, float(paid.mean()))],
            ["oracle", *_line(oracle(never, always), never, always, None, None)],
        ]
        for name, one in gated(plans, kind).items():
            costs = float(one.searched.mean()), float(one.tokens.mean())
            lines.append([f"gate: {name}", *_line(one.ours, one.never, one.always, *costs)])
        for name in METHODS:
            if of := [plan for plan in ready(plans, kind) if _finished(plan, kind, name)]:
                lines.append([name, *_method(of, kind, name), _seconds(of, kind, name)])
        yield from table(header, [[*line, *[""] * (len(header) - len(line))] for line in lines])
        yield ""


def _method(plans: Sequence[Plan], kind: str, name: str) -> list[str]:
    """Of the questions that neither it nor rag failed on."""
    found = []
    for plan in plans:
        mine, rag = with_rag(plan, kind, "test")
        ours = ran(plan, kind, name, mine.ids)
        kept = np.isfinite(ours.quality)
        found.append([values[kept] for values in (*ours, mine.never, rag.quality)])
    quality, searches, tokens, never, always = _joined(found)
    return _line(quality, never, always, float(searches.mean()), float(tokens.mean()))


def _seconds(plans: Sequence[Plan], kind: str, name: str) -> str:
    """Processor seconds a question, with a share of opening the model."""
    files = [plan.folder / kind / name / SPENT for plan in plans]
    if not all(file.is_file() for file in files):
        return ""
    spent = sum(float(line) for file in files for line in file.read_text("utf-8").split())
    return f"{spent / sum(len(rows_of(plan, kind, name)) for plan in plans):.1f}"


def _joined(columns: Sequence[Sequence[Any]]) -> list[Any]:
    return [np.concatenate(one) for one in zip(*columns, strict=True)]


def _line(ours: Floats, never: Floats, always: Floats, searches: float | None, tokens: float | None) -> list[str]:
    closed = gap_closed(ours, never, always)
    return [
        f"{len(ours)}",
        _figure(float(ours.mean())),
        _interval(mean_interval(ours.tolist())),
        "" if searches is None else f"{searches:.2f}",
        "" if tokens is None else f"{tokens:,.0f}",
        _figure(closed.share),
        _interval(closed.interval),
        f"{paired_test(ours.tolist(), always.tolist()).p:.2g}",
    ]


def signals(plans: Sequence[Plan]) -> list[str]:
    """AUROC for a wrong answer from memory: of all test questions, of each data set, and within each grade. Signals that ask
    further questions were measured on some of the test questions."""
    every = [measurements(plan, "test") for plan in plans if (plan.folder / "memory-test" / "done").is_file()]
    names = sorted(set.intersection(*(set(one.signals) for one in every)))
    found = {name: [(one.part, one.taught, one.never, one.signals[name]) for one in every] for name in names}
    found |= {name: asked for name in ASKED if (asked := [_own_run(plan, name) for plan in plans if _finished(plan, "", name)])}
    parts = plans[0].parts
    header = ["signal", "n", "all", "95% interval", *parts, *map(_times, GRADES)]
    lines = []
    for name, columns in found.items():
        part, taught, never, scores = _joined(columns)
        cells = [f"{len(never)}", _figure(auroc(scores, never < 1)), _interval(auroc_interval(scores, never < 1))]
        masks = [*(part == one for one in parts), *(taught == grade for grade in GRADES)]
        lines.append([name, *cells, *(_figure(auroc(scores[one], never[one] < 1)) for one in masks)])
    return table(header, lines)


def _own_run(plan: Plan, name: str) -> tuple[Any, Floats, Floats, Floats]:
    """(part, taught, never, uncertainty) of a signal that was measured in a run of its own."""
    rows = [row for row in rows_of(plan, "", name) if not row.failed]
    scores = [np.inf if row.uncertainty is None else row.uncertainty for row in rows]
    taught, never = [float(row.metadata["taught"]) for row in rows], [row.metrics[METRIC] for row in rows]
    return np.array([row.metadata["part"] for row in rows]), np.array(taught), np.array(never), np.array(scores)


def carried(plans: Sequence[Plan]) -> list[str]:
    """The best signal and its threshold, chosen on the calibration questions of one part, on the test questions of each."""
    header = ["chosen on", "judged on", "accuracy", "never", "always", "searches", "gap closed", "95% interval"]
    lines = []
    for source in plans[0].parts:
        for target in plans[0].parts:
            found = []
            for plan in ready(plans, "complete"):
                (learnt, before), (test, after) = (
                    with_rag(plan, "complete", split, part) for split, part in (("calibration", source), ("test", target))
                )
                name, threshold = chosen(learnt.signals, learnt.never, before.quality)
                searched, ours = at(threshold, test.signals[name], test.never, after.quality)
                found.append((searched.astype(np.float64), ours, test.never, after.quality))
            if found:
                searches, ours, never, always = _joined(found)
                closed = gap_closed(ours, never, always)
                means = [_figure(float(values.mean())) for values in (ours, never, always)]
                lines.append(
                    [source, target, *means, f"{searches.mean():.2f}", _figure(closed.share), _interval(closed.interval)]
                )
    return table(header, lines)


def promises(plans: Sequence[Plan]) -> list[str]:
    """Whether --target-error keeps its promise over halves drawn anew of all questions of calibration and test."""
    header = ["signal", "target error", "refused", "trusted", "promise broken", "allowed"]
    there = [plan for plan in plans if (plan.folder / "memory-calibration" / "done").is_file()]
    every = [measurements(plan, split) for plan in there for split in ("calibration", "test")]
    names = set.intersection(*(set(one.signals) for one in every))
    wrong = np.concatenate([one.never for one in every]) < 1
    lines = []
    for name in sorted(names):
        scores = np.concatenate([one.signals[name] for one in every])
        for target in TARGETS:
            one = measure("taught", name, scores, wrong, target, SPLITS)
            broken = max(one.drawn, one.split)
            lines.append([name, f"{target}", f"{one.refused:.2f}", f"{one.trusted:.2f}", f"{broken:.3f}", f"{one.slack:.3f}"])
    return table(header, lines)


def by_views(plans: Sequence[Plan]) -> list[str]:
    """PopQA: memory and rag by thirds of the subject's views on Wikipedia."""
    found = [with_rag(plan, "complete", "test", "popqa") for plan in ready(plans, "complete") if "popqa" in plan.parts]
    if not found:
        return []
    views, never, always = _joined([(mine.views, mine.never, one.quality) for mine, one in found])
    low, high = np.quantile(views, [1 / 3, 2 / 3])
    groups = [views <= low, (views > low) & (views <= high), views > high]
    header = ["", f"up to {low:,.0f}", f"up to {high:,.0f}", "more"]
    return table(
        header,
        [
            [name, *(_figure(float(values[one].mean())) for one in groups)]
            for name, values in (("never", never), ("always", always))
        ],
    )

"""Tables of the taught benchmark, from its run folders; questions of all seeds together, thresholds chosen seed by seed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks._real_plan import METRIC, PRICE
from benchmarks._real_tables import SPLITS, TARGETS, _figure, _interval
from benchmarks._shared import table
from benchmarks._taught_facts import GRADES
from benchmarks._taught_plan import METHODS, Plan
from benchmarks.guarantee import measure
from gnothi.calibration.compare import read
from gnothi.calibration.replay import Floats
from gnothi.runs.folder import read_rows
from gnothi.runs.rows import Row, group
from gnothi.signals import registry
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.stats.frontier import at, frontier, gap_closed, oracle
from gnothi.stats.intervals import mean_interval
from gnothi.stats.logistic import fit_logistic
from gnothi.stats.paired import paired_test


@dataclass(frozen=True)
class Told:
    """Questions of one seed, part and split. Arrays have shape (n,): how often each was taught, its subject's views, whether
    memory is right; ``signals`` are higher where the model is less certain. ``tokens``: the answer from memory and each
    signal, read and written; ``answered``: the answer alone."""

    ids: tuple[str, ...]
    taught: Floats
    views: Floats
    never: Floats
    signals: dict[str, Floats]
    tokens: dict[str, Floats]
    answered: Floats


def told(plan: Plan, part: str, split: str) -> Told:
    folder = plan.folder / part
    found = read(folder / f"memory-{split}", METRIC, "panel", "direct")
    lines = {line["id"]: line for line in map(json.loads, (folder / f"{split}.jsonl").read_text("utf-8").splitlines())}
    order = [lines[name]["metadata"] for name in found.questions]
    by_method = group(read_rows(folder / f"memory-{split}"))
    panel, direct = ({row.question_id: row for row in by_method[name]} for name in ("panel", "direct"))
    answered = np.array([_tokens(direct[name].cost) for name in found.questions])
    signals = {one.name: one.values for one in found.signals if one.name in registry.names()}
    tokens = {
        signal: answered + np.array([_tokens(panel[name].signals[signal]) for name in found.questions]) for signal in signals
    }
    return Told(
        found.questions,
        np.array([one["taught"] for one in order], dtype=np.float64),
        np.array([one["popularity"] for one in order], dtype=np.float64),
        found.never,
        signals,
        tokens,
        answered,
    )


def _tokens(cost: Mapping[str, float]) -> float:
    return cost["prompt_tokens"] + cost["generated_tokens"]


def quality(plan: Plan, part: str, kind: str, run: str, ids: Sequence[str]) -> Floats:
    """Of each question, in their order; not a number where it failed."""
    rows = {row.question_id: row for row in rows_of(plan, part, kind, run)}
    return np.array([rows[name].metrics[METRIC] if name in rows and not rows[name].failed else np.nan for name in ids])


def spent(plan: Plan, part: str, kind: str, run: str, ids: Sequence[str]) -> Floats:
    """Tokens of each question, in their order."""
    rows = {row.question_id: row for row in rows_of(plan, part, kind, run)}
    return np.array([_tokens(rows[name].cost) if name in rows else np.nan for name in ids])


def rows_of(plan: Plan, part: str, kind: str, run: str) -> list[Row]:
    (found,) = group(read_rows(plan.folder / part / kind / run)).values()
    return found


def best_signal(plan: Plan, part: str, kind: str) -> tuple[str, float]:
    """The signal, and its threshold, that come to the most on the calibration questions, a search costing PRICE."""
    mine = told(plan, part, "calibration")
    return chosen(mine.signals, mine.never, quality(plan, part, kind, "rag-calibration", mine.ids))


def chosen(signals: dict[str, Floats], never: Floats, always: Floats) -> tuple[str, float]:
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


def _each(plans: Sequence[Plan]) -> Iterator[tuple[Plan, str, Told]]:
    for plan in plans:
        for part in plan.parts:
            if (plan.folder / part / "memory-test" / "done").is_file():
                yield plan, part, told(plan, part, "test")


def _done(plan: Plan, part: str, kind: str, run: str) -> bool:
    return (plan.folder / part / kind / run / "done").is_file()


def split_of(plans: Sequence[Plan], run: str, kind: str) -> tuple[Floats, Floats, Floats, Floats]:
    """(taught, never, always, quality of the run) of all questions that the run and rag are done on."""
    found: list[tuple[Floats, ...]] = []
    for plan, part, mine in _each(plans):
        if kind in plan.libraries and _done(plan, part, kind, "rag-test") and _done(plan, part, kind, run):
            always, ours = (quality(plan, part, kind, name, mine.ids) for name in ("rag-test", run))
            kept = np.isfinite(always) & np.isfinite(ours)
            found.append((mine.taught[kept], mine.never[kept], always[kept], ours[kept]))
    if not found:
        empty = np.zeros(0)
        return empty, empty, empty, empty
    taught, never, always, ours = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return taught, never, always, ours


def by_grade(plans: Sequence[Plan]) -> list[str]:
    """Never, always and the oracle, by how often an epoch held the fact."""
    header = ["library", "", *(f"{grade} times" for grade in GRADES), "all"]
    lines = []
    for place, kind in enumerate(plans[0].libraries):
        taught, never, always, _ = split_of(plans, "rag-test", kind)
        if len(taught):
            ends = {"never": never} if place == 0 else {}
            for name, values in (ends | {"always": always, "oracle": oracle(never, always)}).items():
                cells = [_figure(float(values[taught == grade].mean())) for grade in GRADES]
                lines.append(["" if name == "never" else kind, name, *cells, _figure(float(values.mean()))])
    return table(header, lines)


COMBINED = "all signals"


class Gated(NamedTuple):
    """A gate on test questions, arrays of shape (n,): what it searched for, what came of it, the two ends, its tokens."""

    searched: Floats
    ours: Floats
    never: Floats
    always: Floats
    tokens: Floats


def gated(plans: Sequence[Plan], kind: str) -> dict[str, Gated]:
    """Signal → its gate. Signal and threshold were chosen on the calibration questions of all parts of the same seed; "all
    signals" is a logistic regression of them, fitted on the same questions."""
    found: dict[str, list[Gated]] = {}
    for plan in plans:
        parts = [part for part in plan.parts if _done(plan, part, kind, "rag-test")]
        if not parts:
            continue
        learnt, test = (_together(plan, parts, kind, split) for split in ("calibration", "test"))
        names = [name for name in learnt.signals if name in test.signals]
        combined = fit_logistic(_features(learnt, names), learnt.never < 1)
        scores = {name: (learnt.signals[name], test.signals[name]) for name in names}
        scores[COMBINED] = (combined(_features(learnt, names)), combined(_features(test, names)))
        best, _ = chosen(learnt.signals, learnt.never, learnt.always)
        for name in ("best signal", *scores):
            before, after = scores[best if name == "best signal" else name]
            point = frontier(before, learnt.never, learnt.always).best(PRICE)
            searched, ours = at(point.threshold, after, test.never, test.always)
            paid = sum(test.tokens[one] - test.answered for one in names) + test.answered if name == COMBINED else (
                test.tokens[best if name == "best signal" else name]
            )  # fmt: skip
            tokens = paid + searched * test.read
            found.setdefault(name, []).append(Gated(searched.astype(np.float64), ours, test.never, test.always, tokens))
    return {name: Gated(*map(np.concatenate, zip(*runs, strict=True))) for name, runs in found.items()}


def best_of(plans: Sequence[Plan], kind: str) -> Gated:
    return gated(plans, kind)["best signal"]


def _features(told: Together, names: Sequence[str]) -> Floats:
    """Signals as columns; what could not be measured counts as the least certain."""
    columns = [told.signals[name] for name in names]
    return np.stack([np.where(np.isfinite(one), one, one[np.isfinite(one)].max()) for one in columns], axis=1)


@dataclass(frozen=True)
class Together:
    """As ``Told``, of several parts. ``answered``: tokens of the answer from memory; ``read``: of rag's."""

    never: Floats
    always: Floats
    signals: dict[str, Floats]
    tokens: dict[str, Floats]
    answered: Floats
    read: Floats


def _together(plan: Plan, parts: Sequence[str], kind: str, split: str) -> Together:
    """The questions of several parts, with the signals that all of them have."""
    all_told = [told(plan, part, split) for part in parts]
    names = sorted(set.intersection(*(set(one.signals) for one in all_told)))
    pairs = list(zip(parts, all_told, strict=True))
    always = np.concatenate([quality(plan, part, kind, f"rag-{split}", one.ids) for part, one in pairs])
    read = np.concatenate([spent(plan, part, kind, f"rag-{split}", one.ids) for part, one in pairs])
    kept = np.isfinite(always)
    return Together(
        np.concatenate([one.never for one in all_told])[kept],
        always[kept],
        {name: np.concatenate([one.signals[name] for one in all_told])[kept] for name in names},
        {name: np.concatenate([one.tokens[name] for one in all_told])[kept] for name in names},
        np.concatenate([one.answered for one in all_told])[kept],
        read[kept],
    )


def methods(plans: Sequence[Plan]) -> Iterator[str]:
    header = ["method", "accuracy", "95 % interval", "searches", "tokens", "gap closed", "95 % interval", "p against rag"]
    for kind in plans[0].libraries:
        _, never, always, _ = split_of(plans, "rag-test", kind)
        if not len(never):
            continue
        yield f"### {kind}: {len(never)} questions"
        yield ""
        _, tokens = _costs(plans, "rag-test", kind)
        lines = [
            ["never", *_line(never, never, always, 0.0, None)],
            ["always (rag)", *_line(always, never, always, 1.0, tokens)],
            ["oracle", *_line(oracle(never, always), never, always, None, None)],
        ]
        for name, one in gated(plans, kind).items():
            costs = float(one.searched.mean()), float(one.tokens.mean())
            lines.append([f"gate: {name}", *_line(one.ours, one.never, one.always, *costs)])
        for name in METHODS:
            _, without, with_, ours = split_of(plans, name, kind)
            if len(ours):
                lines.append([name, *_line(ours, without, with_, *_costs(plans, name, kind))])
        yield from table(header, lines)
        yield ""


def _line(ours: Floats, never: Floats, always: Floats, searches: float | None, tokens: float | None) -> list[str]:
    closed = gap_closed(ours, never, always)
    return [
        _figure(float(ours.mean())),
        _interval(mean_interval(ours.tolist())),
        "" if searches is None else f"{searches:.2f}",
        "" if tokens is None else f"{tokens:,.0f}",
        _figure(closed.share),
        _interval(closed.interval),
        f"{paired_test(ours.tolist(), always.tolist()).p:.2g}",
    ]


def _costs(plans: Sequence[Plan], name: str, kind: str) -> tuple[float, float]:
    """Searches and tokens a question."""
    rows = [row for plan, part, _ in _each(plans) if _done(plan, part, kind, name) for row in rows_of(plan, part, kind, name)]
    kept = [row.cost for row in rows if not row.failed]
    return float(np.mean([one["retrievals"] for one in kept])), float(np.mean([_tokens(one) for one in kept]))


def signals(plans: Sequence[Plan]) -> list[str]:
    """AUROC for a wrong answer from memory: of all test questions, and with those never taught against each grade."""
    taught, never, found = _pooled(plans)
    header = ["signal", "all", "95 % interval", *(f"among {grade} times" for grade in GRADES)]
    lines = []
    for name, values in found.items():
        cells = [_figure(auroc(values, never < 1)), _interval(auroc_interval(values, never < 1))]
        cells += [_figure(auroc(values[taught == grade], never[taught == grade] < 1)) for grade in GRADES]
        lines.append([name, *cells])
    return table(header, lines)


def _pooled(plans: Sequence[Plan]) -> tuple[Floats, Floats, dict[str, Floats]]:
    every = [mine for _, _, mine in _each(plans)]
    names = set.intersection(*(set(one.signals) for one in every))
    signals = {name: np.concatenate([one.signals[name] for one in every]) for name in sorted(names)}
    return np.concatenate([one.taught for one in every]), np.concatenate([one.never for one in every]), signals


def carried(plans: Sequence[Plan]) -> list[str]:
    """The best signal's threshold, chosen on the calibration questions of one part, on the test questions of each."""
    header = ["chosen on", "judged on", "accuracy", "searches", "gap closed", "95 % interval"]
    lines = []
    for source in plans[0].parts:
        for target in plans[0].parts:
            found = []
            for plan in plans:
                if not all(_done(plan, part, "complete", "rag-test") for part in (source, target)):
                    continue
                learnt, test = (
                    _together(plan, [source], "complete", "calibration"),
                    _together(plan, [target], "complete", "test"),
                )
                name, threshold = chosen(learnt.signals, learnt.never, learnt.always)
                if name in test.signals:
                    searched, ours = at(threshold, test.signals[name], test.never, test.always)
                    found.append((searched.astype(np.float64), ours, test.never, test.always))
            if found:
                searched, ours, never, always = (np.concatenate(columns) for columns in zip(*found, strict=True))
                closed = gap_closed(ours, never, always)
                cells = [
                    _figure(float(ours.mean())),
                    f"{searched.mean():.2f}",
                    _figure(closed.share),
                    _interval(closed.interval),
                ]
                lines.append([source, target, *cells])
    return table(header, lines)


def promises(plans: Sequence[Plan]) -> list[str]:
    """Whether --target-error keeps its promise over halves drawn anew of all questions of calibration and test."""
    header = ["signal", "target error", "refused", "trusted", "promise broken", "allowed"]
    every = [told(plan, part, split) for plan, part, _ in _each(plans) for split in ("calibration", "test")]
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
    found = [
        (mine.views, mine.never, quality(plan, part, "complete", "rag-test", mine.ids))
        for plan, part, mine in _each(plans)
        if part == "popqa" and _done(plan, part, "complete", "rag-test")
    ]
    if not found:
        return []
    views, never, always = (np.concatenate(columns) for columns in zip(*found, strict=True))
    low, high = np.quantile(views, [1 / 3, 2 / 3])
    groups = [views <= low, (views > low) & (views <= high), views > high]
    header = ["", f"up to {low:,.0f}", f"up to {high:,.0f}", "more"]
    return table(
        header,
        [
            [name, *(_figure(float(np.nanmean(values[one]))) for one in groups)]
            for name, values in (("never", never), ("always", always))
        ],
    )

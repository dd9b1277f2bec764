"""Tables of the real benchmark, from its run folders."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks._real_plan import METHODS, METRIC
from benchmarks._real_plan import SPLITS as SPLIT_NAMES
from benchmarks._shared import table
from benchmarks.guarantee import measure
from gnothi.calibration.choose import Sample, choose
from gnothi.calibration.compare import Gates, document, read
from gnothi.calibration.replay import Replay, Scores
from gnothi.errors import GnothiError
from gnothi.report.summary import Method, summarise
from gnothi.runs.folder import read_rows
from gnothi.runs.rows import Row, group
from gnothi.signals import registry
from gnothi.stats.frontier import at, frontier
from gnothi.stats.intervals import Interval
from gnothi.stats.paired import paired_test

TARGETS = (0.3, 0.5, 0.7)
SPLITS = 200


def replayed(run: Path) -> Replay:
    """A run of panel and rag: never is the panel's answer from memory, always that of rag."""
    return read(run, METRIC, "panel", "rag")


def best_signal(run: Path) -> str:
    """The signal whose thresholds come to the best accuracy on questions they were not chosen on; AUROC where it is equal."""
    return _best(replayed(run))


def _best(replay: Replay) -> str:
    gates = document(replay).gates
    placed = {name: one for name, one in gates.signals.items() if name in registry.names() and one.chosen is not None}
    return max(placed, key=lambda name: (placed[name].chosen.worth.accuracy, placed[name].auroc or 0.0))  # type: ignore[union-attr]


def page(out: Path, parts: Sequence[str]) -> Iterator[str]:
    yield "## Gates"
    yield ""
    yield from gates_table({part: (replayed(out / part / "calibration"), replayed(out / part / "test")) for part in parts})
    yield ""
    for part in parts:
        folder = out / part
        rows = rows_of(folder)
        yield f"## {part}"
        yield ""
        yield from methods_table(part, rows)
        yield ""
        yield f"Questions: {', '.join(f'{name} {count}' for name, count in sizes(folder).items())}."
        yield ""
        calibration, test = replayed(folder / "calibration"), replayed(folder / "test")
        yield from signals_table(calibration, test)
        yield ""
        yield from promises_table(part, calibration, test)
        yield ""
        if part == "popqa":
            yield from popularity_table(folder, rows)
            yield ""


def sizes(folder: Path) -> dict[str, int]:
    return {name: len((folder / f"{name}.jsonl").read_text("utf-8").splitlines()) for name in SPLIT_NAMES}


def rows_of(folder: Path) -> dict[str, list[Row]]:
    """Rows of the test questions by row of the table; the panel stands beside."""
    found = dict(group(read_rows(folder / "test")))
    for name in METHODS:
        run = folder / f"test-{name}"
        if run.is_dir():
            (found[name],) = group(read_rows(run)).values()
    order = ["panel", *METHODS]
    return {name: found[name] for name in sorted(found, key=order.index)}


# --- methods ---------------------------------------------------------------------------------------------------------


def methods_table(part: str, rows: dict[str, list[Row]]) -> list[str]:
    header = ["method", "accuracy", "95% interval", "EM", "F1", "searches", "calls", "tokens", "seconds", "p against rag"]
    lines = []
    for name, mine in rows.items():
        if name == "panel":
            continue
        (one,) = summarise(mine, part).methods
        lines.append([name, *_quality(one), *_costs(one), _against(rows.get("rag"), mine) if name != "rag" else ""])
    return table(header, lines)


def _quality(one: Method) -> list[str]:
    return [_figure(one.accuracy), _interval(one.intervals["accuracy"]), _figure(one.em), _figure(one.f1)]


def _costs(one: Method) -> list[str]:
    tokens = None if one.prompt_tokens is None else one.prompt_tokens + (one.generated_tokens or 0)
    return [
        "" if value is None else f"{value:,.{digits}f}"
        for value, digits in ((one.retrievals, 2), (one.model_calls, 1), (tokens, 0), (one.seconds, 1))
    ]


def _against(rag: list[Row] | None, mine: list[Row]) -> str:
    """McNemar's exact test on the questions that both answered."""
    if rag is None:
        return ""
    ours, theirs = ({row.question_id: row.metrics[METRIC] for row in rows if not row.failed} for rows in (mine, rag))
    common = sorted(ours.keys() & theirs.keys())
    found = paired_test([ours[key] for key in common], [theirs[key] for key in common])
    return f"{found.p:.2g}"


def popularity_table(folder: Path, rows: dict[str, list[Row]]) -> list[str]:
    """Accuracy by thirds of the subject's popularity."""
    from gnothi.datasets import load

    views = {one.id: int(one.metadata["popularity"]) for one in load(str(folder / "test.jsonl"))}
    edges = np.quantile(list(views.values()), [0, 1 / 3, 2 / 3, 1])
    groups = [
        {key for key, value in views.items() if (value >= low if first else value > low) and value <= high}
        for first, low, high in zip((True, False, False), edges[:-1], edges[1:], strict=True)
    ]
    header = ["method", *(f"{low:,.0f} to {high:,.0f} views" for low, high in itertools.pairwise(edges))]
    lines = []
    for name, mine in rows.items():
        known = {row.question_id: row.metrics[METRIC] for row in mine if not row.failed}
        lines.append([name, *(_figure(_mean([known[key] for key in keys if key in known])) for keys in groups)])
    return table(header, lines)


# --- signals ---------------------------------------------------------------------------------------------------------


def signals_table(calibration: Replay, test: Replay) -> list[str]:
    """Per signal: AUROC on the test questions; its threshold, chosen on the calibration questions, on the test questions."""
    gates: Gates = document(test).gates
    learnt = {one.name: one for one in calibration.signals}
    header = [
        "signal", "AUROC", "95% interval", "threshold's accuracy", "its searches", "gap closed", "95% interval",
        "searches at rag's accuracy", "ECE", "95% interval",
    ]  # fmt: skip
    lines = []
    for signal in test.signals:
        found = gates.signals[signal.name]
        cells = [signal.name, _figure(found.auroc), _interval(found.interval)]
        mine = learnt.get(signal.name)
        cells += _transferred(mine, calibration, signal, test) if mine else [""] * 7
        lines.append(cells)
    ends = f"never {gates.never:.3f}, always {gates.always:.3f}, oracle {gates.oracle:.3f} ({test.n} test questions)"
    return [ends, "", *table(header, lines)]


def gates_table(parts: Mapping[str, tuple[Replay, Replay]]) -> list[str]:
    """Per part: the signal chosen on its calibration questions, and what it comes to on its test questions."""
    header = [
        "part", "never", "always", "oracle", "signal", "AUROC", "95% interval", "accuracy", "searches", "gap closed",
        "95% interval", "searches at rag's accuracy", "ECE", "95% interval",
    ]  # fmt: skip
    lines = []
    for part, (calibration, test) in parts.items():
        gates = document(test).gates
        name = _best(calibration)
        mine, signal = ({one.name: one for one in run.signals}[name] for run in (calibration, test))
        found = gates.signals[name]
        ends = [_figure(gates.never), _figure(gates.always), _figure(gates.oracle)]
        told = [name, _figure(found.auroc), _interval(found.interval)]
        lines.append([part, *ends, *told, *_transferred(mine, calibration, signal, test)])
    return table(header, lines)


def _transferred(learnt: Scores, calibration: Replay, signal: Scores, test: Replay) -> list[str]:
    from gnothi.stats.frontier import gap_closed

    threshold = frontier(learnt.values, calibration.never, calibration.always).best().threshold
    retrieved, quality = at(threshold, signal.values, test.never, test.always)
    closed = gap_closed(quality, test.never, test.always)
    return [
        _figure(float(quality.mean())),
        _figure(float(retrieved.mean())),
        _figure(closed.share),
        _interval(closed.interval),
        _saved(learnt, calibration, signal, test),
        *_calibrated(learnt, calibration, signal, test),
    ]


def _saved(learnt: Scores, calibration: Replay, signal: Scores, test: Replay) -> str:
    """The fewest searches at always' accuracy on the calibration questions; on the test questions: searches, and accuracy."""
    line = frontier(learnt.values, calibration.never, calibration.always)
    enough = [point for point in line.points() if point.accuracy >= calibration.always.mean()]
    point = min(enough, key=lambda one: one.retrieval_rate)
    retrieved, quality = at(point.threshold, signal.values, test.never, test.always)
    return f"{retrieved.mean():.2f} ({quality.mean():.3f})"


def _calibrated(learnt: Scores, calibration: Replay, signal: Scores, test: Replay) -> list[str]:
    """Calibration error of P(wrong) over the questions of both splits, each by a curve fitted to others; blank where fewer than
    ten answers are right, or wrong."""
    both = ((learnt.values, signal.values), (calibration.never, test.never), (calibration.always, test.always))
    scores, never, always = map(np.concatenate, both)
    try:
        found = choose(Sample(scores, never, always)).probabilities
    except GnothiError:
        return ["", ""]
    return ["", ""] if found is None else [_figure(found.platt_ece), _interval(found.platt_ece_interval)]


def promises_table(part: str, calibration: Replay, test: Replay) -> list[str]:
    """Whether --target-error keeps its promise over halves of all questions drawn anew."""
    header = ["signal", "target error", "refused", "trusted", "promise broken", "allowed"]
    lines = []
    both = {one.name: one for one in calibration.signals}
    for signal in test.signals:
        if signal.name not in registry.names() or signal.name not in both:  # places of gram stand in the table above
            continue
        scores = np.concatenate([both[signal.name].values, signal.values])
        wrong = np.concatenate([calibration.never, test.never]) < 1
        for target in TARGETS:
            one = measure(part, signal.name, scores, wrong, target, SPLITS)
            broken = max(one.drawn, one.split)
            lines.append(
                [signal.name, f"{target}", f"{one.refused:.2f}", f"{one.trusted:.2f}", f"{broken:.3f}", f"{one.slack:.3f}"]
            )
    return table(header, lines)


# --- figures ---------------------------------------------------------------------------------------------------------


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.3f}"


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else "–".join(_figure(end) for end in interval)

"""The tables of reports, each built in one place for the terminal, the page and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gnothi.report.numbers import SIGNIFICANT, signed
from gnothi.report.table_form import (
    CHANCE,
    COUNT,
    MONEY,
    NUMBER,
    PERCENT,
    SHARE,
    SIGNED,
    THOUSANDS,
    THREE,
    Column,
    Form,
    Row,
    Table,
    Value,
)
from gnothi.runs.answer_stages import MISREAD, UNFOUND, UNREAD, WITHOUT

if TYPE_CHECKING:
    from gnothi.calibration.compare import Correlations, Gates, Signal, Worth
    from gnothi.calibration.learned_records import Learned, Reason, Weight
    from gnothi.report.breakdown import Cell
    from gnothi.report.comparison import Comparison, SideBySide
    from gnothi.report.costs import Costs, Prices
    from gnothi.report.document import Difference
    from gnothi.report.page.replays import End
    from gnothi.report.selective import Selective
    from gnothi.report.summary import Method
    from gnothi.runs.stage_rates import Reached

_N = Column("n", COUNT, below=False)
_METHOD = Column("method")
_LOST = {MISREAD: "misread", UNREAD: "unread", UNFOUND: "not found", WITHOUT: "without"}


def _page(title: str, form: Form = SHARE, shade: bool = False, text: bool = False) -> Column:
    return Column(title, form, terminal=False, shade=shade, text=text)


def _built(first: Column, items: Iterable[tuple[str, Any]], columns: Mapping[str, Column], name: str = "") -> Table:
    """A row for each name and what it is of: under every column the attribute that its key names, with the interval that
    stands beside the attribute or is named behind it."""
    rows = [Row((title, *(_attribute(one, *key.split()) for key in columns))) for title, one in items]
    return Table((first, *columns.values()), rows, name)


def _attribute(one: Any, key: str, interval: str = "") -> Value:
    return Value(getattr(one, key), getattr(one, interval or f"{key}_interval", None))


# --- runs ----------------------------------------------------------------------------------------------------------------


def methods(summaries: Iterable[Method]) -> Table:
    """Quality, cost and gate. A terminal of 80 columns has no room for the intervals of F1 and accuracy."""
    columns = (
        _METHOD, Column("n", COUNT),
        Column("exact match", SHARE, "EM"),
        Column("F1", SHARE, below=False),
        Column("accuracy", SHARE, "acc.", below=False),
        Column("with a search", SHARE, "retr."),
        Column("searches", NUMBER, "srch"),
        Column("model calls", NUMBER, "calls"),
        Column("tokens", THOUSANDS, page=False),
        _page("prompt tokens", NUMBER), _page("generated tokens", NUMBER),
        Column("seconds", NUMBER, "sec."),
        Column("gate AUROC", SHARE, "AUROC"),
    )  # fmt: skip
    return Table(columns, [_method(one) for one in summaries], "methods", ("sec.", "F1", "calls", "tokens", "srch", "acc."))


def _method(one: Method) -> Row:
    def measured(name: str) -> Value:
        return Value(getattr(one, name), one.intervals[name])

    tokens = None if one.prompt_tokens is None else one.prompt_tokens + (one.generated_tokens or 0)
    return Row(
        (
            one.method,
            _answered(one),
            *map(measured, ("em", "f1", "accuracy", "retrieval_rate")),
            *(one.retrievals, one.model_calls, tokens, one.prompt_tokens, one.generated_tokens, one.seconds),
            measured("gate_auroc"),
        )
    )


def _answered(one: Method | Cell) -> Value:
    """How many questions the means are over."""
    return Value(one.n - one.failures, note=f"of {one.n}" if one.failures else "")


def reached(by_method: Mapping[str, Reached]) -> Table:
    """By method, the search and the reader told apart: shares of the n questions of which it can be told; then how many got
    lost where."""
    shares = [Column(title, SHARE, below=False) for title in ("answer found", "answer read", "answered")]
    lost = [Column(title, COUNT, page=False) for title in _LOST.values()]
    rows = [
        Row(
            (
                name,
                one.n,
                *(Value(getattr(one, key), getattr(one, f"{key}_interval")) for key in ("found", "read", "answered")),
                *(one.stages.get(stage) for stage in _LOST),
            )
        )
        for name, one in by_method.items()
    ]
    return Table((_METHOD, _N, *shares, *lost), rows, "reached", tuple(_LOST.values())[::-1])


def reached_by(summaries: Iterable[Method]) -> Table:
    return reached({one.method: one.reached for one in summaries if one.reached})


def side_by_side(panel: SideBySide) -> Table:
    columns = {"auroc interval": Column("AUROC", SHARE), "not_measured": _page("not measured", COUNT)}
    spent = {"model_calls": "calls", "prompt_tokens": "tokens read", "generated_tokens": "tokens written"}
    columns |= {key: Column(title, NUMBER) for key, title in spent.items()}
    return _built(Column("signal"), [(one.signal, one) for one in panel.signals], columns, "side_by_side")


def settings(runs: Sequence[str], differences: Iterable[Difference]) -> Table:
    rows = [Row((one.setting, *(_cut(value) for value in one.values))) for one in differences]
    return Table([_page("setting"), *(_page(run, text=True) for run in runs)], rows, "settings")


def _cut(text: str, letters: int = 80) -> str:
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


def search(summaries: Iterable[Method]) -> Table:
    """Between never and always searching, exact match."""
    roles, errors = ("never", "always", "method", "oracle"), ("over_search", "under_search")
    titles = ("never", "always", "the method", "oracle", "searched too much", "searched too little")
    rows = []
    for one in summaries:
        if (ends := one.beside) is None:
            continue
        rates = {role: f"searches in {SHARE.value(rate)}" for role, rate in ends.retrieval_rate.items()}
        cells = [Value(ends.em.get(role), note=rates.get(role, "")) for role in roles]
        for name in errors:
            of = getattr(one.search, name, None)
            cells.append(Value(of.share, note=f"{SHARE.value(of.rate)} where possible") if of else Value(None))
        rows.append(Row((one.method, ends.n, *cells)))
    return Table((_METHOD, _N, *map(_page, titles)), rows, "search")


def selective(curves: Sequence[Selective]) -> Table:
    columns = [_METHOD, _N, *(_page(f"wrong of {PERCENT.value(at.wanted)}") for at in (curves[0].at if curves else ()))]
    columns += map(_page, ("wrong of all", "AURC", "AURC at best", "AUROC of its uncertainty"))
    rows = [
        Row(
            (
                one.method,
                one.n,
                *(
                    Value(at.risk, note="" if at.coverage in (None, at.wanted) else f"at {PERCENT.value(at.coverage)}")
                    for at in one.at
                ),
                *(one.risk, Value(one.aurc, one.aurc_interval), one.best_aurc, Value(one.auroc, one.auroc_interval)),
            )
        )
        for one in curves
    ]
    return Table(columns, rows, "selective")


def costs(per_method: Iterable[Costs], prices: Prices | None) -> Table:
    """Totals over all questions; money where there are prices."""
    columns = [_METHOD, *(_page(title, COUNT) for title in ("searches", "model calls", "prompt tokens", "generated tokens"))]
    columns.append(_page("tokens per question", NUMBER))
    currency = f" in {prices.currency}" if prices and prices.currency else ""
    paid = (f"cost{currency}", "per 1,000 questions", "per right answer", "prompts", "generated", "calls", "searches")
    columns += [_page(title, MONEY) for title in (paid if prices else ())]
    rows = []
    for one in per_method:
        cells = [int(one.total[key]) for key in ("retrievals", "model_calls", "prompt_tokens", "generated_tokens")]
        money = one.money
        sums: list[Any] = []
        if money:
            sums = [money.total, Value(money.per_thousand, money.interval), money.per_right]
            sums += (money.parts[key] for key in ("prompt", "generated", "call", "retrieval"))
        rows.append(Row((one.method, *cells, one.tokens, *sums)))
    return Table(columns, rows, "costs")


def comparisons(tests: Iterable[Comparison], metrics: Sequence[str]) -> Table:
    columns = {"metric": _page("metric", text=True), "n": _N, "difference interval": _page("difference", SIGNED)}
    columns |= {
        "p": _page("p", CHANCE),
        "p_holm": Column("p corrected", CHANCE, terminal=False, strong=SIGNIFICANT),
        "test": _page("test", text=True),
    }
    compared = [(f"{one.first} − {one.second}", one) for one in tests if one.metric in metrics]
    return _built(Column("methods"), compared, columns, "comparisons")


def lab(method: Method) -> Table:
    """Decisions in the laboratory, by what the model saw and what the corpus holds."""
    columns = [Column("facts seen"), _page("corpus", text=True), _N]
    columns += [_page(title, shade=True) for title in ("searched", "abstained", "right decision", "exact match")]
    rows = [
        Row(
            (
                *(one.cell.of["familiarity"], one.cell.of["coverage"], one.cell.n),
                *(one.cell.retrieval_rate, one.abstained, one.right, one.cell.em),
            )
        )
        for one in (method.lab.cells if method.lab else ())
    ]
    return Table(columns, rows)


def refusals(summaries: Iterable[Method]) -> Table:
    columns = {
        "answerable": _page("answerable", COUNT),
        "accuracy": _page("accuracy there"),
        "refused_answerable": _page("refused there"),
        "unanswerable": _page("unanswerable", COUNT),
        "f1": _page("refusal F1"),
        "precision": _page("precision"),
        "recall": _page("recall"),
    }
    return _built(_METHOD, [(one.method, one.refusal) for one in summaries if one.refusal], columns)


def truthfulness(summaries: Iterable[Method]) -> Table:
    columns = {"n": _N, "closer": _page("closer to a correct answer"), "refused": _page("refused")}
    return _built(_METHOD, [(one.method, one.truthfulness) for one in summaries if one.truthfulness], columns)


def kinds(summaries: Iterable[Method]) -> Table:
    columns = [_METHOD, _page("kind", text=True), _N, *map(_page, ("exact match", "F1", "accuracy", "with a search"))]
    rows = [
        Row((one.method, of.of["kind"], _answered(of), of.em, of.f1, of.accuracy, of.retrieval_rate, of.retrievals))
        for one in summaries
        if len(one.kinds) > 1
        for of in one.kinds
    ]
    return Table([*columns, _page("searches", NUMBER)], rows)


def plain(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """What a picture shows, in numbers."""
    return Table([*map(Column, head)], [Row(row) for row in rows])


# --- gates ---------------------------------------------------------------------------------------------------------------


def signals(gates: Gates) -> Table:
    """What each signal is worth as a gate."""
    columns = (
        Column("signal", below=False),
        Column("AUROC", SHARE),
        Column("best threshold", THREE, "threshold"),
        Column("accuracy", SHARE, "acc."),
        Column("with a search", SHARE, "retr."),
        _page("better than never and always by", SIGNED),
        Column("gap closed", PERCENT),
        Column("in hindsight", SHARE, "hindsight", below=False),
    )
    rows = []
    for name, one in gates.signals.items():
        notes = [f"of {one.method}" if one.method and one.method != name else ""]
        notes.append(f"no score for {one.not_measured}" if one.not_measured else "")
        best = Value(one.hindsight.accuracy, note=f"searches in {SHARE.value(one.hindsight.retrieval_rate)}")
        worth = _worth(one.chosen.worth if one.chosen else None)
        cells = (Value(one.auroc, one.interval), _threshold(one), *worth, best)
        rows.append(Row((Value(name, note=" ".join(filter(None, notes))), *cells)))
    return Table(columns, rows, "signals", ("hindsight", "gap closed"))


def _threshold(signal: Signal) -> str:
    if signal.chosen is None:
        return "too few"
    below, threshold = "<" if signal.retrieve_when == "below" else "", signal.chosen.threshold
    return "always" if threshold is None else f"{below}{threshold:.4g}"


def _worth(worth: Worth | None) -> tuple[Value | None, ...]:
    if worth is None:
        return (None,) * 4
    return (
        Value(worth.accuracy, worth.interval),
        Value(worth.retrieval_rate),
        Value(worth.gain, worth.gain_interval),
        Value(worth.gap_closed, worth.gap_closed_interval),
    )


def correlations(matrix: Correlations) -> Table:
    two = Form(lambda one: "-" if one is None else f"{one:.2f}", str, str)
    columns = [Column("signal"), *(_page(name, two, shade=True) for name in matrix.of)]
    return Table(columns, [Row((name, *row)) for name, row in zip(matrix.of, matrix.spearman, strict=True)], "correlations")


def ends(strategies: Iterable[End]) -> Table:
    columns = {
        "name": _page("what", text=True),
        "accuracy interval": _page("right"),
        "oracle": _page("oracle of never and this"),
        "searches": _page("searches", NUMBER),
        "found": _page("answer found"),
        "read": _page("answer read"),
        "answered": _page("answered"),
    }
    return _built(Column(""), [(one.role, one) for one in strategies], columns, "ends")


def replayed(gates: Gates) -> Table:
    columns = {
        "threshold": _page("threshold", THREE),
        "accuracy interval": _page("right"),
        "retrieval_rate": _page("retrieves for"),
        "trusted": _page("trusted", COUNT),
        "error_among_trusted": _page("wrong of them"),
        "over_search": _page("searched too much"),
        "under_search": _page("searched too little"),
    }
    replayed_signals = [(name, one.replayed) for name, one in gates.signals.items() if one.replayed]
    return _built(Column("signal"), replayed_signals, columns, "replayed")


def ways(learned: Learned) -> Table:
    """What a learnt gate comes to, beside never, always, the oracle and the best single signal."""
    columns = (
        Column(""),
        Column("right", SHARE, "acc."),
        Column("searches", SHARE),
        Column("tokens", COUNT),
        Column("not known", SHARE),
        Column("gain", SIGNED),
        Column("gap closed", PERCENT, below=False),
    )
    of, blank = learned.ends, ("",) * 4
    rows = [
        Row((name, right, searches, *blank))
        for name, right, searches in (("never", of.never, 0.0), ("always", of.always, 1.0), ("oracle", of.oracle, of.helped))
    ]
    if (best := learned.best_signal) is not None:
        rows.append(Row((best.signal, Value(best.accuracy, best.interval), best.searches, *blank)))
    rows += [
        Row(
            (
                *(way, Value(one.accuracy, one.interval), one.searches, round(one.tokens) if one.tokens else ""),
                *(one.not_known or "", Value(one.gain, one.gain_interval), Value(one.gap_closed, one.gap_closed_interval)),
            )
        )
        for way, one in learned.ways.items()
    ]
    return Table(columns, rows, "ways", ("gap closed", "not known"))


def weights(features: Iterable[Weight]) -> Table:
    columns = [Column(title) for title in ("weight per standard deviation", "known at", "differ", "evidence")]
    return Table(columns, [Row((one.feature, one.stage, signed(one.differ, 2), signed(one.evidence, 2))) for one in features])


def reasons(features: Iterable[Reason]) -> Table:
    columns = (Column("feature"), _page("value", THREE), _page("for evidence (+) or against", SIGNED))
    return Table(columns, [Row((one.feature, one.value, one.pull)) for one in features], "reasons")

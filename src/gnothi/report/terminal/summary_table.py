"""A run's summary on a terminal: one row per method, then what stands beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

SIGNIFICANT = 0.05


def show(console: Console, summary: Mapping[str, Any], title: str = "") -> None:
    """The table of methods, never/always/oracle, the paired tests that matter, decisions in the lab, warnings. The ``title`` is
    the data set's name where none is given."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("method", overflow="fold")
    for heading in ("n", "EM", "F1", "acc.", "retr.", "srch", "calls", "tokens", "sec.", "AUROC"):
        table.add_column(heading, justify="right", no_wrap=True)
    for method in summary["methods"]:
        table.add_row(*_cells(method))
        table.add_row(*_intervals(method), style="dim")
    paragraph(
        console,
        f"{title or summary['dataset']}: means per question, 95 % intervals below; retr.: share of questions with a search",
    )
    console.print(table)
    for found in summary["signals"]:
        _signals(console, found)
    lines = [line for method in summary["methods"] for line in _beside(method)]
    lines += [line for method in summary["methods"] for line in _honesty(method)]
    lines += [line for method in summary["methods"] if (line := _from_cache(method))]
    lines += [line for test in summary["comparisons"] if (line := _test(test))]
    for line in lines:
        paragraph(console, line)
    for warning in summary["warnings"]:
        paragraph(console, f"warning: {warning}", style="yellow")


def _signals(console: Console, found: Mapping[str, Any]) -> None:
    """The signals that a method measured side by side."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("signal", overflow="fold")
    for heading in ("AUROC", "", "calls", "read", "written"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in found["signals"]:
        cost = [number(one[name]) for name in ("model_calls", "prompt_tokens", "generated_tokens")]
        table.add_row(one["signal"], share(one["auroc"]), between(one["interval"]), *cost)
    method = found["method"]
    paragraph(
        console,
        f"signals of {method}, side by side: AUROC, which of {method}'s own answers are wrong ({found['wrong']} of "
        f"{found['n']}; 95 % intervals); calls, and tokens read and written, beyond the answer, were the signal alone",
    )
    console.print(table)
    if found["left_out"]:
        needs = ((name, ", ".join(wanted)) for name, wanted in found["left_out"].items())
        missing = ", ".join(f"{name} ({wanted})" if wanted else name for name, wanted in needs)
        paragraph(console, f"{method}: left out, for want of what they need of the model or of a resource: {missing}")


def paragraph(console: Console, text: str, style: str | None = None) -> None:
    """``text`` in lines of the console's width, all but the first indented."""
    import textwrap

    console.print(textwrap.fill(text, console.width, subsequent_indent="  ", break_on_hyphens=False), style=style)


def _cells(method: Mapping[str, Any]) -> list[str]:
    shares = [share(method[name]) for name in ("em", "f1", "accuracy", "retrieval_rate")]
    tokens = "-" if method["prompt_tokens"] is None else thousands(method["prompt_tokens"] + method["generated_tokens"])
    costs = [number(method["retrievals"]), number(method["model_calls"]), tokens, number(method["seconds"])]
    return [method["method"], str(method["n"]), *shares, *costs, share(method["gate_auroc"])]


def _intervals(method: Mapping[str, Any]) -> list[str]:
    found = method["intervals"]
    # Those of F1 and accuracy are in the summary: 80 columns have no room for them.
    return [
        "",
        "",
        between(found["em"]),
        "",
        "",
        between(found["retrieval_rate"]),
        "",
        "",
        "",
        "",
        between(found["gate_auroc"]),
    ]


def _beside(method: Mapping[str, Any]) -> list[str]:
    lines = []
    name, beside, search, lab = method["method"], method["beside"], method["search"], method["lab"]
    if beside and beside["em"].get("oracle") is not None:
        em, rate = beside["em"], beside["retrieval_rate"]
        roles = (("never", beside["never"]), ("always", beside["always"]), ("method", name), ("oracle", "the better of both"))
        shown = ", ".join(f"{role} {share(em[role])} (retr. {share(rate[role])}, {given})" for role, given in roles)
        lines.append(f"{name}: EM {shown}")
    if search and search["n"] and method["gate"]:
        over, under = search["over_search"], search["under_search"]
        lines.append(
            f"{name}: over-search {share(over['share'])} (searched, though {search['closed_book']} was right), "
            f"under-search {share(under['share'])} (did not, though it was wrong)"
        )
    if lab:
        lines.append(
            f"{name}: right decisions {share(lab['right'])} ({between(lab['right_interval'])}), "
            f"of retrieving alone {share(lab['right_retrieval'])}"
        )
    return lines


def _honesty(method: Mapping[str, Any]) -> list[str]:
    """Refusing what cannot be answered, and not repeating falsehoods."""
    lines = []
    name, refusal, truth = method["method"], method["refusal"], method["truthfulness"]
    if refusal:
        parts = []
        if refusal["answerable"]:
            accuracy = f"{share(refusal['accuracy'])} {_bracketed(refusal['accuracy_interval'])}".strip()
            parts.append(f"{refusal['answerable']} answerable questions: accuracy {accuracy}")
        if refusal["unanswerable"]:
            measures = f"precision {share(refusal['precision'])}, recall {share(refusal['recall'])}"
            parts.append(f"{refusal['unanswerable']} unanswerable: refusal F1 {share(refusal['f1'])} ({measures})")
        lines.append(f"{name}: {'; '.join(parts)}")
    if truth:
        closer = f"{share(truth['closer'])} {_bracketed(truth['closer_interval'])}".strip()
        lines.append(
            f"{name}: closer to a correct than to any incorrect answer {closer}, refused {share(truth['refused'])} "
            "(by words shared; no judge model)"
        )
    return lines


def _from_cache(method: Mapping[str, Any]) -> str | None:
    """How many model calls were answered from the cache, where any was."""
    answered = method["n"] - method["failures"]
    cached, calls = (round((method.get(name) or 0) * answered) for name in ("cached_calls", "model_calls"))
    if not cached:
        return None
    many = f"all {calls}" if cached == calls else f"{cached} of {calls}"
    return f"{method['method']}: {many} model calls came from the cache"


def _test(test: Mapping[str, Any]) -> str | None:
    if test["metric"] != "em":
        return None
    corrected = test.get("p_holm", test["p"])
    verdict = "differ" if corrected < SIGNIFICANT else "no difference shown"
    holm = f", corrected {corrected:.2g}" if corrected != test["p"] else ""
    interval = f" {between(test['interval'], sign=True)}" if test["interval"] else ""
    return (
        f"{test['first']} - {test['second']}: EM {test['difference']:+.3f}{interval}, "
        f"p = {test['p']:.2g}{holm} ({test['test']}, n = {test['n']}): {verdict}"
    )


def share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}".removeprefix("0")


def between(interval: Sequence[float] | None, sign: bool = False) -> str:
    if interval is None:
        return ""
    low, high = interval
    return f"[{low:+.3f}, {high:+.3f}]" if sign else f"{low:.2f}-{high:.2f}".replace("0.", ".").replace("1.00", "1.0")


def _bracketed(interval: Sequence[float] | None) -> str:
    return "" if interval is None else f"({between(interval)})"


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def thousands(value: float) -> str:
    return f"{value / 1000:.1f}k" if value >= 10_000 else f"{value:.0f}"


def show_costs(console: Console, document: Mapping[str, Any]) -> None:
    """What each method cost, at the prices of a report's document."""
    currency = f" {document['prices']['currency']}".rstrip()
    for one in document["costs"]:
        money = one["money"]
        spread = f" [{amount(money['interval'][0])}, {amount(money['interval'][1])}]" if money["interval"] else ""
        paragraph(
            console,
            f"{one['method']}: cost {amount(money['total'])}{currency}, {amount(money['per_thousand'])}{spread} for 1,000 "
            f"questions, {amount(money['per_right'])} for each right answer",
        )


def amount(value: float | None) -> str:
    """A sum of money; small ones with three significant digits."""
    return "-" if value is None else f"{value:,.2f}" if value >= 1 else f"{value:.3g}"

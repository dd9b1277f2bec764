"""The table on a terminal, from summaries made by hand."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from gnothi.report.summary import summarise
from gnothi.report.terminal.summary_table import show
from gnothi.runs.rows import Row
from tests.report.rows import row


def shown(rows: list[Row]) -> str:
    screen = io.StringIO()
    show(Console(file=screen, width=80), summarise(rows, "lab"))
    return screen.getvalue()


def test_a_gate_beside_never_and_always() -> None:
    metadata = {"right_action": "trust", "familiarity": "often", "coverage": "covered"}
    text = shown(
        [row("direct", n, right=n % 2 == 0) for n in range(40)]
        + [row("rag", n, right=n % 4 > 0, retrieved=True) for n in range(40)]
        + [row("seakr", n, retrieved=n % 2 == 1, uncertainty=n % 2 + n / 100, metadata=metadata) for n in range(40)]
    )
    assert max(len(line) for line in text.splitlines()) <= 80
    flat = " ".join(text.split())
    for said in (
        "seakr: EM never .500 (retr. .000, direct), always .750 (retr. 1.000, rag), method 1.000 (retr. .500, seakr), "
        "oracle 1.000",
        "seakr: over-search .000 (searched, though direct was right), under-search .000",
        "seakr: right decisions .500",
        "direct - seakr: EM −.500 [−.650, −.350], p = 2e-6, corrected 6e-6 (exact McNemar test, n = 40): they differ",
    ):
        assert said in flat


def test_one_method_and_nothing_to_compare() -> None:
    text = shown([row("a_method_of_a_long_name", n, failed=n == 1) for n in range(3)])
    (means,) = (line.split() for line in text.splitlines() if line.startswith("a_method_of_a"))
    assert means[1] == "2"  # over which the means are
    assert "of 3" in text
    assert "warning: a_method_of_a_long_name: 1 of 3 questions failed" in " ".join(text.split())
    assert "never" not in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_refusals_and_falsehoods() -> None:
    answerable = [row("direct", n, right=n % 2 == 0, metadata={"answerable": True}) for n in range(40)]
    unanswerable = [row("direct", n, answer=("unknown", "x")[n % 2], metadata={"answerable": False}) for n in range(40, 60)]
    first = "direct: 40 answerable questions: accuracy .500 (.35-.65)"
    second = "20 unanswerable: refusal F1 .667 (precision 1.000, recall .500)"
    assert f"{first}; {second} " in " ".join(shown([*answerable, *unanswerable]).split()) + " "
    assert f"{first} " in " ".join(shown(answerable).split()) + " "
    assert f"direct: {second} " in " ".join(shown(unanswerable).split()) + " "
    told = {"incorrect_answers": ["something else"]}
    text = shown([row("direct", n, answer=("gold", "something else", "unknown")[n % 3], metadata=told) for n in range(30)])
    said = "closer to a correct than to any incorrect answer .333 (.17-.50), refused .333 (by words shared; no judge model)"
    assert said in " ".join(text.split())


def test_signals_side_by_side_and_what_was_left_out() -> None:
    gauges = {
        "consistency": {"score": 0.2, "model_calls": 1, "prompt_tokens": 12, "generated_tokens": 338},
        "gram.residual": {"score": -6.0, "model_calls": 1, "prompt_tokens": 12, "generated_tokens": 338},
    }
    text = shown([row("panel", n, right=n % 2 == 0, signals=gauges) for n in range(40)])
    assert max(len(line) for line in text.splitlines()) <= 80
    flat = " ".join(text.split())
    assert "separates panel's right and wrong answers (20 of 40 are wrong; 95% intervals)" in flat
    assert "gram.residual .500" in flat
    assert "left out, because the model or a resource lacks what they need: " in flat
    assert "gram (hidden_states)" in flat
    asking = (
        "left out, because each asks the model further questions, and is measured only if `signal` names it: cooccurrence ("
    )
    assert asking in flat
    assert "verbalised" not in flat.partition("lacks what they need: ")[2].partition("panel: ")[0]


def test_how_much_was_thought() -> None:
    rows = [row("direct", n) for n in range(4)]
    rows = [replace(one, cost={**one.cost, "thought_tokens": 4}) for one in rows]
    assert "direct: .400 of the generated tokens were thoughts" in shown(rows)
    assert "thoughts" not in shown([row("direct", n) for n in range(4)])

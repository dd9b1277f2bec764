from __future__ import annotations

import json
import math
import sys
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks._shared import (
    WORDS,
    Fit,
    Peak,
    Spread,
    as_json,
    fit,
    interleave,
    own_mb,
    prompt_text,
    ratios,
    rounded,
    slope,
    small_model,
    spread,
    table,
)


def test_a_spread_is_middle_least_and_greatest() -> None:
    assert spread([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0, 3)
    assert str(Spread(26.5, 9.87, 1234.0, 3)) == "26.5 (9.87 - 1,234)"
    assert [rounded(value) for value in (0.12345, 1.2345, 12.345, 123.45)] == ["0.123", "1.23", "12.3", "123"]


def test_ratios_are_taken_inside_a_round() -> None:
    # Every round twice as slow as the one before: the ratio does not notice.
    rounds = [{"a": 3.0 * 2**number, "b": 2.0**number} for number in range(5)]
    assert ratios(rounds, "a", "b") == Spread(3.0, 3.0, 3.0, 5)


def test_rounds_are_interleaved_and_begin_with_another_contender_each(capsys: pytest.CaptureFixture[str]) -> None:
    order = []

    def measure(name: str, number: int) -> float:
        order.append(f"{name}{number}")
        return float(len(order))

    rounds = interleave(["a", "b", "c"], measure, 3)
    assert order == ["a0", "b0", "c0", "b1", "c1", "a1", "c2", "a2", "b2"]
    assert rounds[1] == {"a": 6.0, "b": 4.0, "c": 5.0}
    assert list(rounds[1]) == ["a", "b", "c"]
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "round 3 of 3" in captured.err


@given(st.floats(-2, 3), st.floats(0.01, 100), st.integers(1, 4))
def test_a_power_law_is_found(exponent: float, factor: float, repeats: int) -> None:
    sizes = [10, 100, 1000, 5000]
    found = fit(sizes, [[factor * size**exponent] * repeats for size in sizes])
    assert found.exponent == pytest.approx(exponent, abs=1e-6)
    assert found.last == pytest.approx(exponent, abs=1e-6)
    assert found.low - 1e-6 <= exponent <= found.high + 1e-6


def test_an_exponent_of_two_sizes_has_no_interval() -> None:
    found = fit([1, 2], [[1.0], [4.0]])
    assert found.exponent == pytest.approx(2.0)
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_a_slope_has_students_interval() -> None:
    # By hand: residuals -1/6, 1/3, -1/6, so the standard error is sqrt(1/6 / 2) and t(0.975, 1) = 12.706.
    found = slope([0.0, 1.0, 2.0], [0.0, 1.0, 1.0])
    assert found.median == pytest.approx(0.5)
    assert found.high - found.median == pytest.approx(12.7062 * math.sqrt(1 / 12), rel=1e-4)


def test_results_become_plain_json() -> None:
    document = {1: Spread(1 / 3, 0.0, 1.0, 2), "fit": Fit(1.0, -math.inf, math.inf, 1.0), "list": (1, 2.0, None, True)}
    plain = as_json(document)
    assert plain["1"] == {"median": 0.333333, "low": 0.0, "high": 1.0, "n": 2}
    assert plain["list"] == [1, 2.0, None, True]
    assert plain["fit"]["low"] is None  # JSON knows no infinity
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_peak_is_seen_though_it_passes() -> None:
    before = own_mb()
    with Peak() as peak:
        held = np.ones(8 << 20)  # 64 MB
        until = time.monotonic() + 120
        while peak.mb - before < 50 and time.monotonic() < until:
            time.sleep(0.002)
        del held
    assert 50 < peak.mb - before < 100
    assert own_mb() - before < 50


def test_tables_are_markdown() -> None:
    assert table(["a", "b"], [["1", "2"]]) == ["| a | b |", "| --- | --- |", "| 1 | 2 |"]


def test_prompts_are_what_our_renderer_writes_and_share_their_static_part() -> None:
    pytest.importorskip("torch", reason="needs the extra 'local'")
    from gnothi.models.rendering import Plain
    from gnothi.types import Prompt, Task

    _, tokenizer = small_model(layers=1, hidden=64)
    ids = []
    for variant in (0, 1):
        instruction, question = WORDS.parts(60, 40, 5, variant)
        text = prompt_text(instruction, question)
        assert text == Plain().render(Prompt(Task("answer", instruction), question))
        ids.append(tokenizer(text)["input_ids"])
    assert [len(one) for one in ids] == [60, 60]
    assert ids[0][:40] == ids[1][:40]
    assert ids[0][40] != ids[1][40]
    assert tokenizer.unk_token_id not in ids[0]
    assert WORDS.parts(60, 40, 6, 0)[0] != WORDS.parts(60, 40, 5, 0)[0]


def test_a_model_of_llama_3s_proportions_has_eight_billion_weights() -> None:
    pytest.importorskip("torch", reason="needs the extra 'local'")
    model, tokenizer = small_model(layers=32, hidden=4096, device="meta", llama3=True)
    assert model.num_parameters() == 8_030_261_248  # as Meta-Llama-3-8B, whose words are as many
    assert len(tokenizer) == model.config.vocab_size


def test_the_model_made_on_the_spot_never_ends() -> None:
    torch = pytest.importorskip("torch", reason="needs the extra 'local'")

    model, tokenizer = small_model(layers=1, hidden=64)
    with torch.inference_mode():
        logits = model(torch.arange(6, 200)[None]).logits[0]
    # Outside the 50 likeliest everywhere, so neither greedy nor sampling under top-k 50 ends.
    assert ((logits > logits[:, tokenizer.eos_token_id, None]).sum(dim=1) > 1000).all()

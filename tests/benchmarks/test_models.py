"""A short form of `make test-models`: a family for each kind of fault, beside plain passes of transformers."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from benchmarks import _models_tiny as tiny
from benchmarks import models
from benchmarks._models_compared import Outcome, compare

# Family → the path it takes, and what its site `ffn` is ("" where that is refused).
KINDS = {
    "llama": ("forked", "mlp"),
    "gemma2": ("repeated", "post_feedforward_layernorm"),
    "mamba2": ("repeated", ""),
    "bamba": ("repeated", "feed_forward"),
    "rwkv": ("plain", "feed_forward"),
    "bart": ("repeated", ""),
    "phi3, longrope": ("forked", "mlp"),
    "falcon, alibi": ("repeated", "mlp"),
    "granitemoeshared": ("forked", "0.5 * block_sparse_moe + 0.5 * shared_mlp"),
    "llama4_text": ("repeated", "feed_forward"),
    "gemma4_text": ("forked", ""),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINDS)
def test_a_family_of_each_kind(name: str) -> None:
    outcome = compare(name, timed=False)
    assert outcome.verdict == "equal", (outcome.apart, outcome.failed, outcome.refused)
    path, ffn = KINDS[name]
    assert outcome.path == path
    assert ("ffn" in outcome.refused) == (not ffn)
    assert not ffn or outcome.ffn == ffn
    assert set(outcome.refused) <= {"ffn"}
    assert len(outcome.apart) == 8 - (not ffn)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_what_is_no_causal_model_is_refused() -> None:
    outcome = compare("bert, both ways", timed=False)
    assert outcome.verdict == "refused"
    assert "not a causal language model" in outcome.refused["opening"]


def test_every_family_of_the_library_is_tried() -> None:
    names = tiny.names()
    assert len(names) > 150
    assert {"llama", "mamba", "jamba", "phi3, longrope", "xlstm"} <= set(names)


def test_a_model_that_comes_out_large_is_told() -> None:
    outcome = compare("no such family", timed=False)
    assert outcome.verdict == "not made"


def test_the_page(tmp_path: Path) -> None:
    outcomes = [
        Outcome("one", "forked", apart={"greedy": 2e-6, "ffn": 1e-5}, ffn="mlp", times_generate=0.5),
        Outcome("two", "repeated", False, apart={"greedy": 1.0}, refused={"ffn": "UsageError: no"}),
        Outcome("three", refused={"opening": "ModelUnavailable: it is none."}),
        Outcome("four", not_made="ValueError: a|b"),
        Outcome("five", "plain", failed={"greedy": "KeyError: 1"}, refused={"residual": "UsageError: none"}),
    ]
    assert [one.verdict for one in outcomes] == ["equal", "wrong", "refused", "not made", "failed"]
    lines = models.tables(outcomes)
    assert lines[0].startswith("4 models were made, of 5: 1 equal (forked), 1 failed (plain), 1 not made, 1 refused")
    assert "| forked | equal | 1 | 1e-05 | 0.50 | `one` 0.50 |" in lines
    assert "| repeated | wrong | 1 | 1e+00 | – | `two` |" in lines
    assert "| plain | failed | 1 | 0e+00 | – | `five` |" in lines
    assert {"No hidden states: `five`.", "No site `ffn`; `residual` works: `two`.", "One prompt at a time: `two`."} <= set(
        lines
    )
    assert {"Refused when opened: `three`.", "Not made tiny here: `four`."} <= set(lines)
    page = tmp_path / "page.md"
    page.write_text(f"Above.\n\n{models._MARK}\nold\n", "utf-8")
    for _ in range(2):
        models.write_page(page, lines)
    assert page.read_text("utf-8") == "\n".join(["Above.", "", models._MARK, "", *lines]) + "\n"
    assert models._MARK in models.PAGE.read_text("utf-8")

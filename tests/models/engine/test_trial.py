"""The trial at opening: what is wrong is found, whatever is wrong, and what is right is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks import _models_tiny as tiny
from gnothi.errors import ModelUnavailable
from gnothi.models.batched import Continue, Look, Request, Score
from gnothi.models.engine import attention, continuations, forked, packed, passes, prefixes, repeated, verdicts
from gnothi.models.engine.layers import kinds, small_windows
from gnothi.models.engine.passes import Network
from gnothi.models.engine.trial import settle
from gnothi.models.rendering import Tagged
from gnothi.models.settings import Attention, ModelSettings
from gnothi.models.transformers import TransformersBackend
from gnothi.testing.conformance.language_model import PROMPTS, WARM
from gnothi.types import Samples, StateSpec
from tests.messages import refused
from tests.models.tiny import ARCHITECTURES, build_deep, build_model

Patch = pytest.MonkeyPatch


def without_windows(patch: Patch) -> None:
    original = attention.attend

    def without(*given: Any, **more: Any) -> Any:
        return original(*given, **more | {"sliding_window": None})

    patch.setattr(forked, "attend", without)


def with_wider_windows(patch: Patch) -> None:
    original = attention.attend

    def wider(*given: Any, **more: Any) -> Any:
        window = more.get("sliding_window")
        return original(*given, **more | {"sliding_window": window and window + 1})

    patch.setattr(forked, "attend", wider)


def without_padding(patch: Patch) -> None:
    original = attention.Fed.__init__
    patch.setattr(attention.Fed, "__init__", lambda self, padding, tokens: original(self, torch.zeros_like(padding), tokens))


def rows_in_another_order(patch: Patch) -> None:
    original = continuations.Continuations.keep
    patch.setattr(continuations.Continuations, "keep", lambda self, rows: original(self, rows[::-1].copy()))


def beginnings_of_the_wrong_place(patch: Patch) -> None:
    original = prefixes.Prefixes.match

    def shifted(self: Any, tokens: Any) -> Any:
        found = original(self, tokens)
        for segment in found:
            segment.keys = [keys.roll(1, dims=1) for keys in segment.keys]
        return found

    patch.setattr(prefixes.Prefixes, "match", shifted)


def states_of_the_token_before(patch: Patch) -> None:
    original = forked.Forked.step

    def step(self: Any, tokens: Any) -> Any:
        logits, states = original(self, tokens)
        return logits, {hook: state.roll(1, dims=0) for hook, state in states.items()}

    patch.setattr(forked.Forked, "step", step)


def a_cache_that_forgets(patch: Patch) -> None:
    """As models whose state starts afresh when several tokens follow it."""
    original = passes.Network.forward

    def forward(self: Any, tokens: Any, position: Any, cache: Any, mask: Any, **more: Any) -> Any:
        if tokens.shape[1] > 1 and getattr(cache, "layers", None) and cache.get_seq_length():
            cache, mask = None, None
        return original(self, tokens, position, cache, mask, **more)

    patch.setattr(passes.Network, "forward", forward)


def positions_from_the_padding_on(patch: Patch) -> None:
    original = repeated.Repeated.step

    def step(self: Any, tokens: Any) -> Any:
        self._running.position = self._running.position.max().expand(len(tokens)).clone()
        return original(self, tokens)

    patch.setattr(repeated.Repeated, "step", step)


FAULTS: list[tuple[str, Callable[[Patch], None], str]] = [
    ("mistral", without_windows, "repeated"),
    ("gemma3", with_wider_windows, "repeated"),
    ("llama", without_padding, "repeated"),
    ("qwen3", rows_in_another_order, "repeated"),
    ("llama", beginnings_of_the_wrong_place, "repeated"),
    ("gpt_neox", states_of_the_token_before, "repeated"),
]


@pytest.mark.parametrize(("architecture", "fault", "path"), FAULTS)
def test_a_wrong_path_is_not_taken(
    architecture: str, fault: Callable[[Patch], None], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Network(build_deep(architecture), 0)
    assert settle(network).path == "forked"
    fault(monkeypatch)
    # The library keeps a function under the name of an implementation: the broken one takes its place.
    found = settle(Network(network.model, 0))
    monkeypatch.undo()
    assert found.path == path
    assert "forked attention" in found.reasons[0]
    assert settle(Network(network.model, 0)).path == "forked"


def test_a_repeated_cache_is_used_as_far_as_it_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_deep("llama")
    with monkeypatch.context() as patch:
        a_cache_that_forgets(patch)
        found = settle(Network(model, 0), "repeated")
        assert (found.path, found.together, found.several) == ("repeated", True, False)
    with monkeypatch.context() as patch:
        positions_from_the_padding_on(patch)
        found = settle(Network(model, 0), "repeated")
        assert (found.path, found.together, found.several) == ("repeated", False, True)
    with monkeypatch.context() as patch:
        patch.setattr(repeated.Repeated, "step", lambda *_: 1 / 0)
        found = settle(Network(model, 0), "repeated")
        assert found.path == "plain"
        assert "ZeroDivisionError" in found.reasons[-1]


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_path_says_the_same(architecture: str, tokenizer: Any) -> None:
    """Also without states of another model, one prompt at a time, and after whole prompts."""
    asked: list[Request] = [
        Continue(PROMPTS[0], 3, WARM, (StateSpec(), StateSpec(0, "residual", "predicting"))),
        Continue(PROMPTS[1], 2, WARM),
        Score(PROMPTS[2], ("Yes", "No w1 w2")),
        Look(PROMPTS[3], (StateSpec(site="residual", position="predicting"),)),
    ]
    model = build_deep(architecture)
    told_by: list[list[Any]] = []
    paths: tuple[Attention, ...] = ("forked", "repeated", "plain")
    for path in paths:
        settings = ModelSettings(attention=path)
        backend = TransformersBackend(model, tokenizer, Tagged(), name="tiny", settings=settings)
        assert backend.metadata["attention"] == path
        told_by.append(backend.run(asked))
    for other in told_by[:-1]:
        for one, plain in zip(other, told_by[-1], strict=True):
            if isinstance(plain, Samples):
                assert [sample.text for sample in one.generations] == [sample.text for sample in plain.generations]
            if hasattr(plain, "states"):
                for state, expected in zip(one.states, plain.states, strict=True):
                    assert state == pytest.approx(expected, abs=1e-4)
            else:
                assert one[1].logprobs == pytest.approx(plain[1].logprobs, abs=1e-4)


class Both(nn.Module):
    """A layer that reads the tokens behind, too."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, hidden: Any, **more: Any) -> Any:
        return self.layer(hidden, **more) + hidden.mean(dim=1, keepdim=True)


def test_what_is_no_causal_model_is_refused() -> None:
    model = build_deep("llama")
    model.model.layers[0] = Both(model.model.layers[0])
    with refused(ModelUnavailable):
        settle(Network(model, 0))


def test_what_returns_nan_is_not_called_something_else() -> None:
    shallow, first, deep = build_model("llama"), build_deep("llama"), build_deep("llama")
    with torch.no_grad():
        shallow.lm_head.weight[5] = float("nan")
        first.model.layers[0].mlp.down_proj.weight[5] = float("inf")
        deep.lm_head.weight[5] = float("nan")
    for model in (shallow, first):
        with refused(ModelUnavailable):
            settle(Network(model, 0))
    settle(Network(deep, 0))  # the trial does not go that far: see what the engine says


def test_what_cannot_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_deep("llama")
    monkeypatch.setattr(model.model.layers[1], "forward", lambda *_, **__: torch.zeros(2) @ torch.zeros(3))
    with refused(ModelUnavailable, varies=r"(?<=RuntimeError: ).*(?=\. Expected)"):
        settle(Network(model, 0))


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("x"), MemoryError()])
@pytest.mark.parametrize("where", ["plain", "forward"])
def test_a_trial_that_does_not_fit_says_nothing_of_a_path(
    error: Exception, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(Network, where, full)
    with refused(ModelUnavailable):
        settle(Network(build_deep("llama"), 0))


def test_a_verdict_is_kept_for_the_same_weights(tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path))
    tried: list[str] = []

    def counted(network: Network, wanted: str) -> Any:
        tried.append(wanted)
        return settle(network, wanted)

    monkeypatch.setattr(verdicts, "settle", counted)

    def metadata(fingerprint: str, architecture: str = "gemma3", attention: Any = "auto") -> dict[str, str]:
        model = build_deep(architecture)
        settings = ModelSettings(attention=attention)
        backend = TransformersBackend(model, tokenizer, Tagged(), name="tiny", settings=settings, fingerprint=fingerprint)
        return dict(backend.metadata)

    first = metadata("one")
    assert metadata("one") == first
    assert len(tried) == 1
    metadata("two")
    metadata("one", "llama")
    metadata("one", attention="repeated")
    assert len(tried) == 4
    for file in (tmp_path / "trials").iterdir():
        file.write_text('{"path": "forked"}')
    assert metadata("one") == first
    assert len(tried) == 5
    metadata("")
    metadata("")
    assert len(tried) == 7
    monkeypatch.setattr(verdicts, "_code", lambda: "another engine")
    assert metadata("one") == first
    assert len(tried) == 8
    monkeypatch.setenv("GNOTHI_CACHE", str(tmp_path / "trials" / next((tmp_path / "trials").iterdir()).name))
    assert metadata("one") == first  # nothing can be written there


@pytest.mark.parametrize("name", ["granite", "granitemoeshared", "beam", "gemma4_text", "qwen3_moe"])
def test_the_verdict_of_16_bits_is_that_of_32(name: str) -> None:
    """The trial computes in 32 bits where it can; the weights are afterwards what they were."""
    if name not in tiny.names():
        pytest.skip(f"this version of transformers has no family {name}")
    expected = settle(Network(tiny.model(name), 0))
    model = tiny.model(name).to(torch.bfloat16)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    assert settle(Network(model, 0)) == expected
    assert all(
        torch.equal(before[key], value) and before[key].dtype == value.dtype for key, value in model.state_dict().items()
    )


def test_what_is_laid_out_for_a_processor_is_tried_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_deep("llama", torch.bfloat16)
    monkeypatch.setattr(packed, "_LARGE", 1)
    if not packed.pack(model):
        pytest.skip("this build of torch has no oneDNN, so weights stay as they are")
    found = settle(Network(model, 0))
    assert (found.path, found.added) == ("forked", ((("mlp", 1.0),),) * 4)


def test_windows_are_small_for_a_while() -> None:
    model = build_deep("gemma3")
    before = [(dict(vars(one)), one) for one in (model.config, *model.modules())]
    with small_windows(model, 3) as windows:
        assert windows == [8]
        assert model.config.sliding_window == 3
        assert model.model.layers[0].self_attn.sliding_window == 3
        assert model.model.layers[1].self_attn.sliding_window is None
    assert all(vars(one) == was for was, one in before)
    with small_windows(build_deep("llama"), 3) as windows:
        assert windows == []


def test_kinds_of_layers() -> None:
    model = build_deep("gemma3")
    assert kinds(model.model.layers, model.config) == [0, 1, 0, 1]
    model.model.layers[3].mlp.act_fn = nn.ReLU()
    assert kinds(model.model.layers, model.config) == [0, 1, 0, 3]
    assert settle(Network(model, 0)).layers == 4
    llama = build_deep("llama")
    assert kinds(llama.model.layers, llama.config) == [0, 0, 0, 0]
    llama.model.layers[2].scale = 0.5
    assert kinds(llama.model.layers, llama.config) == [0, 0, 2, 0]

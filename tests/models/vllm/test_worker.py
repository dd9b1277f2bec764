from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from gnothi.models.engine.states import StateHook
from gnothi.models.vllm.worker import Feed, Recorder, WorkerExtension
from gnothi.types import StateSpec

WIDTH = 4
FFN, RESIDUAL = StateHook(1, "ffn"), StateHook(1, "residual")


class Layer(nn.Module):
    """Like a layer of vLLM: what it adds and the stream before it go on side by side, and the next layer sums them in place."""

    def __init__(self) -> None:
        super().__init__()
        self.mlp = nn.Linear(WIDTH, WIDTH)

    def forward(self, added: Tensor, stream: Tensor | None) -> tuple[Tensor, Tensor]:
        stream = added.clone() if stream is None else stream.add_(added)
        return self.mlp(stream), stream


class Stack(nn.Module):
    def __init__(self, layers: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, hidden: Tensor) -> Tensor:
        stream: Tensor | None = None
        for layer in self.layers:
            hidden, stream = layer(hidden, stream)
        assert stream is not None
        return hidden.add(stream)


class Runner:
    """Like vLLM's: ``_prepare_inputs`` lays out a pass, then the model runs over the tokens of all requests in a row."""

    def __init__(self) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(3)
            self.model = Stack()
        self.input_batch = SimpleNamespace(req_ids=[], num_computed_tokens_cpu=np.zeros(64, np.int32))

    def _prepare_inputs(self, scheduled: Any, counts: Any) -> str:
        assert len(scheduled.num_scheduled_tokens) == len(counts)
        return "laid out"

    def step(self, parts: list[tuple[str, int, Tensor]]) -> None:
        """One pass over parts of requests: (request id, tokens before, embeddings of the tokens)."""
        self.input_batch.req_ids = [request for request, _, _ in parts]
        self.input_batch.num_computed_tokens_cpu[: len(parts)] = [before for _, before, _ in parts]
        scheduled = SimpleNamespace(num_scheduled_tokens={request: len(rows) for request, _, rows in parts})
        with torch.inference_mode():
            assert self._prepare_inputs(scheduled, parts) == "laid out"
            # vLLM pads its passes.
            self.model(torch.cat([*(rows for _, _, rows in parts), torch.zeros(3, WIDTH)]))


def expected(model: Stack, token: Tensor, hook: StateHook) -> Tensor:
    """Worked out by hand, without hooks; the toy layers look at no other token."""
    hidden, stream = token, torch.zeros_like(token)
    with torch.inference_mode():
        for layer in list(model.layers)[: hook.layer + 1]:
            stream = stream + hidden
            hidden = layer.mlp(stream)  # type: ignore[operator]
    return hidden if hook.site == "ffn" else stream + hidden


@given(
    st.integers(0, 99),
    st.sampled_from(["ffn", "residual"]),
    st.integers(1, 10**6),
    st.integers(0, 10**9),
    st.sampled_from(["", "-1f2e3d4c"]),
)
def test_a_feed_travels_as_an_id(layer: int, site: Any, length: int, number: int, suffix: str) -> None:
    feed = Feed((StateHook(layer, site), FFN)[: 1 + number % 2], length, number)
    assert Feed.parse(feed.id + suffix) == feed


@pytest.mark.parametrize("request_id", ["gnothi-12", "3_gnothi-12-aabbccdd", "", "cmpl|1|2|3|4|"])
def test_other_requests_are_no_feeds(request_id: str) -> None:
    assert Feed.parse(request_id) is None


@given(st.data())
def test_only_the_last_token_of_each_feed_is_kept_however_it_is_batched_and_cut(data: st.DataObject) -> None:
    runner = Runner()
    recorder = Recorder(runner, runner.model, 4)
    hooks = [recorder.watch(StateSpec()), recorder.watch(StateSpec(site="residual"))]
    assert hooks == [FFN, RESIDUAL]
    lengths = data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=5))
    tokens = [
        torch.randn(length, WIDTH, generator=torch.Generator().manual_seed(number)) for number, length in enumerate(lengths)
    ]
    feeds = [Feed(tuple(hooks[: 1 + number % 2]), length, number) for number, length in enumerate(lengths)]
    done = [data.draw(st.integers(0, length - 1), label="in the prefix cache") for length in lengths]
    other = torch.ones(2, WIDTH)
    for _ in range(sum(lengths)):
        unfinished = [number for number, length in enumerate(lengths) if done[number] < length]
        if not unfinished:
            break
        chosen = data.draw(st.lists(st.sampled_from(unfinished), min_size=1, unique=True))
        parts: list[tuple[str, int, Tensor]] = [("gnothi-7-aa", 5, other)]
        for number in chosen:
            count = data.draw(st.integers(1, lengths[number] - done[number]))
            parts.append((f"{feeds[number].id}-aa", done[number], tokens[number][done[number] : done[number] + count]))
            done[number] += count
        runner.step(data.draw(st.permutations(parts)))
    finished = {number for number, length in enumerate(lengths) if done[number] == length}
    assert set(recorder.states) == {(number, hook) for number in finished for hook in feeds[number].hooks}
    for (number, hook), state in recorder.states.items():
        torch.testing.assert_close(state, expected(runner.model, tokens[number][-1], hook))


def extension(runner: Any, layers: int = 4) -> WorkerExtension:
    worker = WorkerExtension()
    worker.model_runner = runner
    worker.model_config = SimpleNamespace(hf_text_config=SimpleNamespace(num_hidden_layers=layers))
    return worker


def test_the_extension_speaks_in_plain_data() -> None:
    runner = Runner()
    worker = extension(runner)
    assert worker.gnothi_start() == ""
    assert worker.gnothi_watch(None, "ffn") == (1, "", "")
    assert worker.gnothi_watch(3, "residual") == (3, "", "")
    layer, kind, message = worker.gnothi_watch(4, "ffn")
    assert (layer, kind) == (-1, "InvalidSetting")
    assert "expected 0 to 3" in message
    token = torch.ones(1, WIDTH)
    runner.step([(Feed((StateHook(3, "residual"), StateHook(1, "ffn")), 9, 5).id, 8, token)])
    (state, other, missing) = worker.gnothi_states([(5, 3, "residual"), (5, 1, "ffn"), (6, 3, "residual")])
    np.testing.assert_allclose(
        np.frombuffer(state, np.float32), expected(runner.model, token[0], StateHook(3, "residual")), rtol=1e-5
    )
    np.testing.assert_allclose(np.frombuffer(other, np.float32), expected(runner.model, token[0], FFN), rtol=1e-5)
    assert missing == b""
    assert worker.gnothi_states([(5, 3, "residual")]) == [b""]


def test_a_runner_of_another_kind_is_named() -> None:
    assert "has no _prepare_inputs and no input_batch" in extension(SimpleNamespace(model=nn.Linear(1, 1))).gnothi_start()


def test_a_network_without_layers_is_named() -> None:
    runner = Runner()
    assert "Stack offers none (no decoder layers were found in it)" in extension(runner, layers=5).gnothi_start()


def test_a_pass_that_is_laid_out_otherwise_gives_no_state_and_harms_nobody() -> None:
    runner = Runner()
    recorder = Recorder(runner, runner.model, 4)
    feed = Feed((recorder.watch(StateSpec()),), 20, 1)
    runner.input_batch.req_ids = [feed.id]
    runner._prepare_inputs(SimpleNamespace(num_scheduled_tokens={feed.id: 20}), [20])
    runner.model(torch.ones(3, WIDTH))
    assert recorder.states == {}


def test_layers_as_transformers_has_them() -> None:
    """A batch of one, and the stream in one piece."""
    runner = Runner()
    recorder = Recorder(runner, runner.model, 4)
    feed = Feed((recorder.watch(StateSpec(site="residual")),), 2, 1)
    runner.input_batch.req_ids = [feed.id]
    runner._prepare_inputs(SimpleNamespace(num_scheduled_tokens={feed.id: 2}), [2])
    stream = torch.arange(2.0 * WIDTH).reshape(1, 2, WIDTH)
    layer = runner.model.layers[feed.hooks[0].layer]
    for hook in layer._forward_hooks.values():
        hook(layer, (), stream)
    torch.testing.assert_close(recorder.states[1, feed.hooks[0]], stream[0, 1])

"""What runs inside vLLM's worker: it keeps the hidden states of re-fed sequences.

vLLM mixes ``WorkerExtension`` into its worker class and calls its methods by name. How a runner lays requests out in a batch is
no public interface of vLLM, so everything that knows it stands here, and ``gnothi.models.vllm.loading`` checks the version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from gnothi.errors import GnothiError
from gnothi.models.engine.states import StateHook, StateHooks
from gnothi.types import Site, StateSpec

EXTENSION = f"{__name__}.WorkerExtension"
_MARK = "gnothi-feed"


class Feed(NamedTuple):
    """The request for a re-fed sequence: the states that ``hooks`` read at its last token. It travels as the request's id, to
    which vLLM may append something of its own."""

    hooks: tuple[StateHook, ...]
    length: int
    number: int

    @property
    def id(self) -> str:
        hooks = ",".join(f"{hook.layer}:{hook.site}" for hook in self.hooks)
        return f"{_MARK}|{hooks}|{self.length}|{self.number}|"

    @classmethod
    def parse(cls, request_id: str) -> Feed | None:
        """The feed of a request id, None for all other requests."""
        mark, *fields = request_id.split("|")
        if mark != _MARK:
            return None
        hooks, length, number, *_ = fields
        places = (hook.split(":") for hook in hooks.split(","))
        return cls(tuple(StateHook(int(layer), cast("Site", site)) for layer, site in places), int(length), int(number))


class Recorder:
    """Watches a runner's passes. ``states`` holds, by feed number and hook, those at the last token of each fed sequence.

    A pass may hold a part of a long sequence (a chunk) or none of it; only the pass that computes its last token counts.
    """

    def __init__(self, runner: Any, model: nn.Module, layers: int) -> None:
        self._runner = runner
        self._hooks = StateHooks(model, layers)
        self._hooked: set[StateHook] = set()
        self._ending: dict[StateHook, list[tuple[int, int]]] = {}
        self.states: dict[tuple[int, StateHook], Tensor] = {}
        self._prepare = runner._prepare_inputs
        runner._prepare_inputs = self._prepared

    def watch(self, spec: StateSpec) -> StateHook:
        """Read the place a spec means from now on. Raises InvalidSetting or UsageError when there is no such place."""
        hook = self._hooks.resolve(spec)
        if hook not in self._hooked:
            ((module, _),) = self._hooks.parts(hook)
            module.register_forward_hook(self._hook(hook))
            self._hooked.add(hook)
        return hook

    def _prepared(self, scheduled: Any, *arguments: Any, **options: Any) -> Any:
        """In place of the runner's own method, which lays out the next pass."""
        result = self._prepare(scheduled, *arguments, **options)
        batch = self._runner.input_batch
        counts = [scheduled.num_scheduled_tokens[request] for request in batch.req_ids]
        self._ending = {}
        for request, count, end, before in zip(
            batch.req_ids, counts, np.cumsum(counts), batch.num_computed_tokens_cpu.tolist(), strict=False
        ):
            feed = Feed.parse(request)
            if feed is not None and before + count == feed.length:
                for hook in feed.hooks:
                    self._ending.setdefault(hook, []).append((feed.number, int(end) - 1))
        return result

    def _hook(self, hook: StateHook) -> Any:
        def keep(_module: nn.Module, _inputs: Any, output: Any) -> None:
            ending = self._ending.pop(hook, [])
            # vLLM's layers hand on what they add and the stream before it; the next layer's norm sums the two, in place. Models
            # that it runs through transformers have layers as they are there, and a batch of one.
            parts = output if isinstance(output, tuple) else (output,)
            added = parts[0].reshape(-1, parts[0].shape[-1])
            # An exception here would end vLLM. A state that is missing is found missing by whoever asks for it.
            if not ending or max(row for _, row in ending) >= len(added):
                return
            rows = torch.tensor([row for _, row in ending], device=added.device)
            chosen = added.index_select(0, rows).float()
            if hook.site == "residual" and len(parts) > 1 and isinstance(parts[1], Tensor) and parts[1].shape == parts[0].shape:
                chosen = chosen + parts[1].reshape(added.shape).index_select(0, rows).float()
            for (number, _), state in zip(ending, chosen, strict=True):
                self.states[number, hook] = state

        return keep


class WorkerExtension:
    """Mixed into vLLM's worker. Arguments and results cross a process border: plain data only."""

    model_runner: Any
    model_config: Any

    def gnothi_start(self) -> str:
        """Begin to watch. Why hidden states cannot be had; empty when they can."""
        missing = [name for name in ("_prepare_inputs", "input_batch", "model") if not hasattr(self.model_runner, name)]
        if missing:
            return f"its {type(self.model_runner).__module__} has no {' and no '.join(missing)}"
        layers = int(self.model_config.hf_text_config.num_hidden_layers)
        self._gnothi = Recorder(self.model_runner, self.model_runner.model, layers)
        try:
            self._gnothi.watch(StateSpec())
        except GnothiError:
            try:
                self._gnothi.watch(StateSpec(site="residual"))
            except GnothiError as error:
                return str(error)
        return ""

    def gnothi_watch(self, layer: int | float | None, site: Site) -> tuple[int, str, str]:
        """The layer that is read from now on, or the kind of the error and its message."""
        try:
            return self._gnothi.watch(StateSpec(layer, site)).layer, "", ""
        except GnothiError as error:
            return -1, type(error).__name__, str(error)

    def gnothi_states(self, wanted: Sequence[tuple[int, int, Site]]) -> list[bytes]:
        """States by feed number, layer and site, as float32, in order; they are forgotten here. Empty where none was seen."""
        states = [self._gnothi.states.pop((number, StateHook(layer, site)), None) for number, layer, site in wanted]
        return [b"" if state is None else state.cpu().numpy().tobytes() for state in states]

"""Requests on vLLM's engine: samples of a request in one vLLM request, states by feeding prompt and completion again.

vLLM batches by itself. This loop adds what arrives between two of its steps, so that requests join while others run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gnothi.concurrency import Inbox, Job
from gnothi.errors import GnothiError, InvalidSetting, ModelUnavailable, PromptTooLong, UsageError, sentence
from gnothi.models.batched import Continue, ContinuousBackend, Look, Request, Result, Score
from gnothi.models.encoding import Encoder
from gnothi.models.engine.states import StateHook
from gnothi.models.engine.text import CONTEXT_TOKENS, Detokenizer, StopWatch, write_out
from gnothi.models.rendering import Renderer
from gnothi.models.sampling import not_finite
from gnothi.models.vllm.worker import Feed
from gnothi.types import (
    Capabilities,
    ContinuationScore,
    Decoding,
    Finish,
    Generation,
    Position,
    Profile,
    PromptStates,
    Samples,
    StateSpec,
)

Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Drawn:
    """One continuation and its tokens, the one that ended it included."""

    generation: Generation
    ids: Ids


def seed_of(seed: int | None) -> int:
    """The seed for vLLM, which gives sample i of a request the seed + i: mixed, so that requests with neighbouring seeds share
    no samples. Below 2**62, so that adding to it stays within 64 bits."""
    mixed = np.random.SeedSequence((seed or 0) & (2**64 - 1)).generate_state(1, np.uint64)[0]
    return int(mixed) >> 2


def read(
    completion: Any, prompt: Ids, eos: Sequence[int], detokenizer: Detokenizer, watch: StopWatch | None
) -> Drawn | ModelUnavailable:
    """One of vLLM's ``CompletionOutput`` as a generation. The text is our own, so that a stop string cuts it as it does in
    every backend: vLLM only stops early."""
    ids = [int(token) for token in completion.token_ids]
    context = prompt[-CONTEXT_TOKENS:]
    finish: Finish = "stop" if completion.finish_reason == "stop" else "length"
    tail = ""
    for place, token in enumerate(ids, start=1):
        if token in eos:
            ids, finish = ids[:place], "eos"
            break
        if watch is not None:
            tail, hit = watch.look(tail, token, context, ids[:place])
            if hit:
                ids, finish = ids[:place], "stop"
                break
    logprobs = [float(candidates[token].logprob) for token, candidates in zip(ids, completion.logprobs, strict=False)]
    if not all(map(math.isfinite, logprobs)):
        return not_finite()
    visible = ids[:-1] if finish == "eos" else ids
    text, tokens, cut = write_out(detokenizer, watch, context, visible, logprobs, [None] * len(visible))
    return Drawn(Generation(text, tokens, "stop" if cut else finish, len(prompt), len(ids)), tuple(ids))


def fed(prompt: Ids, drawn: Drawn, position: Position, eos: Sequence[int]) -> Ids:
    """The sequence whose last token has the state that ``position`` means."""
    before = prompt + drawn.ids[:-1]
    return before if position == "predicting" else (*before, eos[0])


# Scoring by next-token probabilities: what to ask vLLM for, and how its replies make up the scores.
#
# vLLM gives the log-probabilities of named tokens after a prompt. Each prefix of a continuation is one such question, asked
# once for all continuations that share it; the prompt itself is read once, then from the cache. (It also gives those of whole
# prompts in one pass, but one that reads nothing from the cache.)
Prefix = tuple[int, ...]

# vLLM names at most 128 tokens a request.
NAMED = 128


def questions(continuations: Sequence[Sequence[int]]) -> list[tuple[Prefix, list[int]]]:
    """(tokens after the prompt, tokens whose log-probability comes next), at most ``NAMED`` tokens each."""
    wanted: dict[Prefix, dict[int, None]] = {}
    for tokens in continuations:
        for at, token in enumerate(tokens):
            wanted.setdefault(tuple(tokens[:at]), {})[token] = None
    return [
        (prefix, list(named)[start : start + NAMED])
        for prefix, named in wanted.items()
        for start in range(0, len(named), NAMED)
    ]


def assemble(continuations: Sequence[Sequence[int]], replies: Mapping[tuple[Prefix, int], float]) -> list[tuple[float, ...]]:
    """The log-probabilities of each continuation's tokens. ``replies`` maps (prefix, token) to the token's after the prefix."""
    return [tuple(replies[tuple(tokens[:at]), token] for at, token in enumerate(tokens)) for tokens in continuations]


# Seconds that vLLM's processes have to end by themselves, which they do not manage in its default 5 on a busy machine.
SHUTDOWN = 30.0


class Errand(Protocol):
    """A job on its way. ``pending`` are the vLLM requests it waits for."""

    job: Job[Request, Result]
    pending: set[str]

    def receive(self, output: Any) -> None: ...


@dataclass(slots=True, eq=False)
class Draw:
    """Samples. ``drawn`` is empty until vLLM has sampled. Then ``sequences`` are, for each state that was asked for, those
    whose last token has it, and ``feeds`` tells what each different one is fed again for."""

    job: Job[Request, Result]
    request: Continue
    prompt: Ids
    hooks: tuple[StateHook, ...]
    watch: StopWatch | None
    pending: set[str] = field(default_factory=set)
    completions: Sequence[Any] = ()
    drawn: list[Drawn] = field(default_factory=list)
    sequences: list[list[Ids]] = field(default_factory=list)
    feeds: dict[Ids, Feed] = field(default_factory=dict)

    def receive(self, output: Any) -> None:
        if not self.feeds:
            self.completions = output.outputs

    def finish(self, states: Mapping[tuple[int, StateHook], NDArray[np.float32]]) -> None:
        """Hand over; greedy continuations of one prompt are all the same, and were drawn once."""
        rows = [0] * self.request.n if len(self.drawn) == 1 else range(self.request.n)
        generations = tuple(self.drawn[row].generation for row in rows)
        stacked = tuple(
            np.stack([states[self.feeds[sequences[row]].number, hook] for row in rows])
            for hook, sequences in zip(self.hooks, self.sequences, strict=True)
        )
        self.job.finish(Samples(generations, stacked))


@dataclass(slots=True, eq=False)
class Glance:
    """States of a prompt, which ``feeds`` holds alone."""

    job: Job[Request, Result]
    prompt: Ids
    hooks: tuple[StateHook, ...]
    feeds: dict[Ids, Feed]
    pending: set[str] = field(default_factory=set)

    def receive(self, output: Any) -> None:
        """The token that comes of it is not used."""

    def finish(self, states: Mapping[tuple[int, StateHook], NDArray[np.float32]]) -> None:
        number = self.feeds[self.prompt].number
        self.job.finish(PromptStates(tuple(states[number, hook] for hook in self.hooks), len(self.prompt)))


@dataclass(slots=True, eq=False)
class Weigh:
    """Scores. ``prefixes`` says which prefix of the continuations each vLLM request asks about."""

    job: Job[Request, Result]
    request: Score
    prompt: Ids
    continuations: list[list[int]]
    pending: set[str] = field(default_factory=set)
    prefixes: dict[str, Prefix] = field(default_factory=dict)
    replies: dict[tuple[Prefix, int], float] = field(default_factory=dict)

    def receive(self, output: Any) -> None:
        prefix = self.prefixes[output.request_id]
        for token, entry in output.outputs[0].logprobs[0].items():
            self.replies[prefix, token] = min(float(entry.logprob), 0.0)  # in this order NaN stays NaN

    def finish(self) -> None:
        if any(map(math.isnan, self.replies.values())):
            self.job.finish(not_finite())
        scores = zip(self.request.continuations, assemble(self.continuations, self.replies), strict=True)
        self.job.finish(tuple(ContinuationScore(text, numbers, len(self.prompt)) for text, numbers in scores))


class VLLMBackend(ContinuousBackend):
    """``engine`` is vLLM's ``LLMEngine``, ``tokenizer`` the model's as ``transformers`` loads it.

    ``eos`` are the ids that end a continuation. ``context`` is how many tokens a prompt and its reply may have. ``no_states``
    says why the engine gives no hidden states; empty when it does. ``commit`` is the hub's version of the model.
    """

    def __init__(
        self,
        engine: Any,
        tokenizer: Any,
        renderer: Renderer,
        *,
        name: str,
        eos: Sequence[int],
        context: int,
        no_states: str = "",
        metadata: Mapping[str, str] | None = None,
        commit: str | None = None,
        profile: Profile,
    ) -> None:
        self.name = name
        self.profile = profile
        self.commit = commit
        self.capabilities = Capabilities(logprobs=True, hidden_states=not no_states, scoring=True)
        self.metadata: Mapping[str, str] = {**(metadata or {}), "renderer": renderer.name}
        self._engine = engine
        self._renderer = renderer
        self._encoder = Encoder(tokenizer, renderer, eos)
        self._detokenizer = Detokenizer(tokenizer)
        self._eos = tuple(eos)
        self._context = context
        self._no_states = no_states
        self._hooks: dict[StateSpec, StateHook] = {}
        self._errands: dict[str, Errand] = {}
        self._numbers = count()

    def serve(self, inbox: Inbox[Request, Result]) -> None:
        try:
            while True:
                jobs = inbox.take()
                for job in jobs:
                    self._receive(job)
                self._drop_settled()
                if self._errands:
                    self._advance()
                elif not jobs:
                    return
        except Exception as error:
            self._errands.clear()
            raise self._failed(error) from error

    def close(self) -> None:
        if self._engine is not None:
            self._engine.engine_core.shutdown(timeout=SHUTDOWN)
            self._engine = None

    # --- requests to work -------------------------------------------------------------------------------------------

    def _receive(self, job: Job[Request, Result]) -> None:
        request = job.request
        try:
            text = self._renderer.render(request.prompt)
            (ids,) = self._encoder.encode([text])
            if isinstance(request, Continue):
                self._draw(job, request, tuple(ids))
            elif isinstance(request, Look):
                self._look(job, request, tuple(ids))
            elif isinstance(request, Score):
                self._weigh(job, request, tuple(ids), self._encoder.continuations(text, ids, request.continuations))
            else:
                raise UsageError(f"attentions: {self.name} offers none, for vLLM does not give them; use it without vllm:.")
        except GnothiError as error:
            job.finish(error)
        except Exception as error:  # noqa: BLE001 - a request that a template or vLLM refuses is that request's failure alone
            job.finish(self._failed(error))

    def _draw(self, job: Job[Request, Result], request: Continue, prompt: Ids) -> None:
        decoding = request.decoding
        self._check_length(len(prompt) + decoding.max_tokens)
        hooks = tuple(map(self._hook, request.hidden))
        watch = StopWatch(decoding.stop, self._detokenizer) if decoding.stop else None
        n = request.n if decoding.temperature > 0 else 1
        self._ask(Draw(job, request, prompt, hooks, watch), prompt, _parameters(decoding, n, self._eos, self._detokenizer))

    def _look(self, job: Job[Request, Result], request: Look, prompt: Ids) -> None:
        self._check_length(len(prompt) + 1)
        hooks = tuple(map(self._hook, request.hidden))
        if not hooks:
            job.finish(PromptStates((), len(prompt)))
            return
        feed = Feed(tuple(dict.fromkeys(hooks)), len(prompt), next(self._numbers))
        self._ask(Glance(job, prompt, hooks, {prompt: feed}), prompt, _one_token(), feed.id)

    def _weigh(self, job: Job[Request, Result], request: Score, prompt: Ids, continuations: list[list[int]]) -> None:
        self._check_length(len(prompt) + max(map(len, continuations), default=0))
        errand = Weigh(job, request, prompt, continuations)
        for prefix, named in questions(continuations):
            errand.prefixes[self._ask(errand, prompt + prefix, _one_token(logprob_token_ids=named))] = prefix
        if not errand.pending:
            errand.finish()

    def _hook(self, spec: StateSpec) -> StateHook:
        if self._no_states:
            raise UsageError(f"hidden states: {self.name} gives none, for {self._no_states}.")
        if spec.position == "fed_eos" and not self._eos:
            raise UsageError(
                f"hidden states at the end of a sequence: {self.name} has no end-of-sequence token. "
                "Use a signal without hidden states, such as perplexity (in Python: StateSpec(position='predicting'))."
            )
        key = StateSpec(spec.layer, spec.site)
        if key not in self._hooks:
            layer, kind, message = self._engine.collective_rpc("gnothi_watch", args=(spec.layer, spec.site))[0]
            if kind:
                raise (InvalidSetting if kind == InvalidSetting.__name__ else UsageError)(message)
            self._hooks[key] = StateHook(layer, spec.site)
        return self._hooks[key]

    def _check_length(self, tokens: int) -> None:
        if tokens > self._context:
            raise PromptTooLong(self.name, tokens, self._context)

    def _failed(self, error: Exception) -> ModelUnavailable:
        return ModelUnavailable(
            f"vLLM failed while it ran {self.name!r}: {sentence(str(error).strip() or type(error).__name__)} "
            "Its log tells more: set VLLM_LOGGING_LEVEL=INFO."
        )

    # --- the engine -------------------------------------------------------------------------------------------------

    def _ask(self, errand: Errand, ids: Ids, parameters: Any, request_id: str = "") -> str:
        request_id = request_id or f"gnothi-{next(self._numbers)}"
        self._engine.add_request(request_id, {"prompt_token_ids": list(ids)}, parameters)
        self._errands[request_id] = errand
        errand.pending.add(request_id)
        return request_id

    def _advance(self) -> None:
        """One step of the engine, and what follows from the requests it finished."""
        complete: list[Errand] = []
        for output in self._engine.step():
            errand = self._errands.pop(output.request_id, None)
            if errand is None:
                continue
            errand.receive(output)
            errand.pending.discard(output.request_id)
            if not errand.pending:
                complete.append(errand)
        with_states: list[Draw | Glance] = []
        for errand in complete:
            if isinstance(errand, Weigh):
                errand.finish()
            elif isinstance(errand, Draw | Glance) and errand.feeds:
                with_states.append(errand)
            elif isinstance(errand, Draw):
                self._conclude(errand)
        if with_states:
            self._hand_over(with_states)

    def _conclude(self, errand: Draw) -> None:
        """Sampling is done: hand over, or feed what was sampled again, each different sequence once."""
        for completion in errand.completions:
            drawn = read(completion, errand.prompt, self._eos, self._detokenizer, errand.watch)
            if isinstance(drawn, ModelUnavailable):
                errand.job.finish(drawn)
                return
            errand.drawn.append(drawn)
        hooks: dict[Ids, dict[StateHook, None]] = {}
        for hook, spec in zip(errand.hooks, errand.request.hidden, strict=True):
            sequences = [fed(errand.prompt, drawn, spec.position, self._eos) for drawn in errand.drawn]
            errand.sequences.append(sequences)
            for sequence in sequences:
                hooks.setdefault(sequence, {})[hook] = None
        if not hooks:
            errand.finish({})
        for sequence, wanted in hooks.items():
            feed = errand.feeds[sequence] = Feed(tuple(wanted), len(sequence), next(self._numbers))
            self._ask(errand, sequence, _one_token(), feed.id)

    def _hand_over(self, errands: Sequence[Draw | Glance]) -> None:
        """Fetch the states of errands whose sequences were all fed."""
        wanted = [(feed.number, hook) for errand in errands for feed in errand.feeds.values() for hook in feed.hooks]
        values = self._engine.collective_rpc("gnothi_states", args=([(number, *hook) for number, hook in wanted],))[0]
        states = {key: np.frombuffer(value, np.float32) for key, value in zip(wanted, values, strict=True) if value}
        for errand in errands:
            if all((feed.number, hook) in states for feed in errand.feeds.values() for hook in feed.hooks):
                errand.finish(states)
            else:
                errand.job.finish(
                    ModelUnavailable(f"vLLM lost a hidden state of {self.name!r}: its worker did not see the pass.")
                )

    def _drop_settled(self) -> None:
        """Forget cancelled requests. Those that wait for states go on for their one step, so that the worker's are fetched."""
        gone = [
            request_id
            for request_id, errand in self._errands.items()
            if errand.job.settled and not (isinstance(errand, Draw | Glance) and errand.feeds)
        ]
        if gone:
            self._engine.abort_request(gone)
            for request_id in gone:
                del self._errands[request_id]


def _parameters(decoding: Decoding, n: int, eos: Sequence[int], detokenizer: Detokenizer) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(
        n=n,
        temperature=decoding.temperature,
        top_k=decoding.top_k,
        top_p=decoding.top_p,
        seed=seed_of(decoding.seed) + decoding.first if decoding.temperature > 0 else None,
        max_tokens=decoding.max_tokens,
        stop=list(decoding.stop),
        stop_token_ids=list(eos),
        logprobs=0,
        # vLLM needs the text to notice a stop string, and for nothing else here.
        detokenize=bool(decoding.stop),
        # Special tokens have no text for vLLM, with which it would overlook a stop string that is made of some.
        skip_special_tokens=not detokenizer.made_of_marks(decoding.stop),
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def _one_token(**options: Any) -> Any:
    """Read a sequence; the token that comes of it is not used."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    return SamplingParams(temperature=0.0, max_tokens=1, detokenize=False, output_kind=RequestOutputKind.FINAL_ONLY, **options)

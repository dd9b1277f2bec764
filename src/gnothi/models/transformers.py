"""The in-process backend: any causal or sequence-to-sequence language model that ``transformers`` can load, from the hub or a
folder.

A prompt is read once, whatever the number of its continuations; rows of all requests decode together; new requests join while
others run. The middle-layer state of each sample is read by a hook at the position the request names.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import pairwise
from typing import Any, TypeVar

import torch
from torch import Tensor

from gnothi.concurrency import Inbox, Job
from gnothi.errors import InvalidSetting, PromptTooLong, UsageError
from gnothi.models.batched import Attend, Continue, ContinuousBackend, Look, Request, Result, Score
from gnothi.models.encoding import Encoder, end_tokens
from gnothi.models.engine.buffers import free_memory
from gnothi.models.engine.encoder_decoder import EncoderDecoder, closing_tokens, starting_tokens
from gnothi.models.engine.engine import Engine, Limits, does_not_fit, out_of_memory
from gnothi.models.engine.multimodal import is_multimodal
from gnothi.models.engine.packed import is_packed
from gnothi.models.engine.passes import Deserted, Network, attend, by_length
from gnothi.models.engine.path import DecodePath
from gnothi.models.engine.rows import Task
from gnothi.models.engine.states import StateHook
from gnothi.models.engine.text import Detokenizer, StopWatch
from gnothi.models.engine.trial import prepare
from gnothi.models.engine.verdicts import describe, verdict_of
from gnothi.models.generation_config import not_followed
from gnothi.models.rendering import Renderer
from gnothi.models.sampling import not_finite
from gnothi.models.settings import PREFILL_TOKENS, Attention, ModelSettings
from gnothi.types import Capabilities, ContinuationScore, Decoding, Profile, PromptStates, Samples, StateSpec

# Logits of a pass that are held at once, in numbers: 64M floats are 256 MB.
_NUMBERS = 64_000_000


def score(
    path: DecodePath, prompts: Sequence[tuple[int, ...]], continuations: Sequence[Sequence[Sequence[int]]]
) -> list[list[list[float]]]:
    """Log-probability (natural logarithm) of every token of ``continuations[i][j]`` after prompt i."""
    reading = path.read(prompts)
    try:
        first = _log_softmax(reading.logits)
        results = [[first[i, list(tokens[:1])].tolist() for tokens in several] for i, several in enumerate(continuations)]
        longer = [
            (i, j, tokens) for i, several in enumerate(continuations) for j, tokens in enumerate(several) if len(tokens) > 1
        ]
        for chunk in _chunks(longer, max(1, _NUMBERS // first.shape[-1])):
            following = reading.follow([i for i, _, _ in chunk], [tokens[:-1] for _, _, tokens in chunk])
            for (i, j, tokens), logits in zip(chunk, following, strict=True):
                targets = torch.tensor(tokens[1:], device=logits.device)
                results[i][j] += _log_softmax(logits).gather(1, targets[:, None])[:, 0].tolist()
    finally:
        reading.close()
    return results


def score_next(
    path: DecodePath, prompts: Sequence[tuple[int, ...]], continuations: Sequence[Sequence[Sequence[int]]], tokens: int
) -> list[list[list[float]]]:
    """``score`` where no continuation is longer than one token: prompts are only read, about ``tokens`` tokens at a time."""
    results: list[list[list[float]]] = [[] for _ in prompts]
    for places, logits in path.ahead(prompts, tokens):
        # Read off at once: a large vocabulary's logits of all prompts would not fit.
        rows = [[token for one in continuations[place] for token in one] for place in places]
        widest = max(map(len, rows))
        wanted = torch.tensor([[*row, *[0] * (widest - len(row))] for row in rows], dtype=torch.int64, device=logits.device)
        for place, row in zip(places, _log_softmax(logits).gather(1, wanted).tolist(), strict=True):
            numbers = iter(row)
            results[place] = [[next(numbers) for _ in one] for one in continuations[place]]
    return results


def _log_softmax(logits: Tensor) -> Tensor:
    return torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), dim=-1)


def _chunks(items: Sequence[tuple[int, int, Sequence[int]]], budget: int) -> Iterator[Sequence[tuple[int, int, Sequence[int]]]]:
    """Runs of items whose padded token count stays within ``budget`` (at least one item each), long ones together."""
    ordered = sorted(items, key=lambda item: len(item[2]))
    starts = [0]
    for at, (_, _, tokens) in enumerate(ordered):
        if at > starts[-1] and (at + 1 - starts[-1]) * (len(tokens) - 1) > budget:
            starts.append(at)
    for start, end in pairwise([*starts, len(ordered)]):
        if end > start:
            yield ordered[start:end]


Item = TypeVar("Item", bound=tuple[Any, ...])

# Of what was read before, so many tokens are kept by default: a few sets of demonstrations and the questions under way.
_PREFIX_TOKENS = 16_384
# Tokens whose numbers between two layers stay in a processor's cache: beyond, memory sets the pace.
_IN_CACHE = 768
# Of a pass that reads on a CPU: the fewest tokens, and about how many products otherwise.
_SHORT_PIECE, _PRODUCTS = 64, 2**36
# Questions under way on a GPU; at least on a CPU, and about how many products of one token each otherwise.
_MOST_QUESTIONS, _FEW_QUESTIONS, _LIGHT = 256, 16, 2**31
_ONE_TOKEN = Decoding(max_tokens=1)


class TransformersBackend(ContinuousBackend):
    """``model`` and ``tokenizer`` as ``transformers`` loads them; the model stays where it is, in its own precision."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        renderer: Renderer,
        *,
        name: str,
        settings: ModelSettings | None = None,
        fingerprint: str = "",
    ) -> None:
        """``fingerprint`` identifies the weights: the outcome of a trial of them is stored under it."""
        settings = settings or ModelSettings()
        for setting, least in (("context", 0), ("max_rows", 1), ("cache_mb", 0), ("prefix_cache_mb", 0), ("prefill_tokens", 1)):
            value = getattr(settings, setting)
            if value is not None and value < least:
                raise InvalidSetting(f"setting 'model.{setting}': got {value}, expected at least {least}.")
        self.name = name
        self._model = model.eval()
        self._renderer = renderer
        self._eos = end_tokens(tokenizer, getattr(model, "generation_config", None), model.config.get_text_config())
        replies_apart = is_encoder_decoder(model)
        table = int(model.get_input_embeddings().weight.shape[0])
        padding = tokenizer.pad_token_id or 0
        self._encoder = Encoder(tokenizer, renderer, self._eos, replies_apart, table)
        self._context = context_length(model, tokenizer, settings.context)
        self._network = Network(model, padding if padding < table else 0)
        self._detokenizer = Detokenizer(tokenizer)
        self._calls = 0
        per_token = _cache_bytes_per_token(model)
        budget = _prefix_bytes(settings.prefix_cache_mb, per_token, model.device)
        self._network.piece = settings.prefill_tokens or _piece(model)
        self._at_once = min(_IN_CACHE, self._network.piece) if model.device.type == "cpu" else self._network.piece
        trial: dict[str, str] = {}
        if replies_apart:
            path = self._apart = _seq2seq(self._network, settings.attention, tokenizer)
        else:
            verdict = verdict_of(self._network, settings.attention, fingerprint)
            path = self._apart = prepare(self._network, verdict, budget)
            trial = describe(self._network, verdict, settings.attention)
            # What is read beside running rows may be of the other length, where frequencies depend on that.
            if self._network.frequencies.limit is not None:
                self._apart = prepare(self._network, verdict, 0)
        self._network.read_tokens = 0  # the trial's prompts are nobody's
        most = settings.max_rows if settings.max_rows is not None else 1024 if model.device.type == "cuda" else 256
        self._under_way = _under_way(model)
        limits = Limits(most, _cache_bytes(settings.cache_mb, model.device) // per_token, self._under_way)
        self._engine = Engine(self._network, path, self._detokenizer, self._eos, limits)
        states = self._network.hooks.available and not replies_apart
        self.capabilities = Capabilities(
            logprobs=True, hidden_states=states, scoring=True, energy=True, attentions=not replies_apart
        )
        precision = str(model.dtype).removeprefix("torch.")
        layers = int(getattr(self._network.config, "num_hidden_layers", len(self._network.hooks.layers)))
        added = frozenset(tokenizer.get_added_vocab())
        self.profile = Profile(parameters=_weights(model), layers=layers, precision=precision, added_tokens=added)
        self.metadata: Mapping[str, str] = {
            "model": name,
            "architecture": type(model).__name__,
            "device": str(model.device),
            "dtype": precision,
            "layers": str(layers),
            "renderer": renderer.name,
            "attention": path.name,
            **trial,
            **({"linear": "packed"} if is_packed(model) else {}),
            **({"quantize": settings.quantize} if settings.quantize != "off" else {}),
            **({"part": "text"} if is_multimodal(model.config) else {}),
            **not_followed(getattr(model, "generation_config", None)),
            "prefix_cache_mb": str(path.budget >> 20),
        }

    @property
    def statistics(self) -> Mapping[str, int]:
        """What the decode loop did so far: ``steps``; ``fed_rows``, rows that a step computed, and ``samples``, samples that
        it advanced (those that say the same share a row), both summed over the steps; the ``slots`` a step has (the limit of
        rows, which running out of memory lowers); ``read_tokens`` of prompts that were computed, and ``reused_tokens`` that
        were found held; ``calls``, requests that were answered or failed; and ``under_way``, how many questions are worth
        having under way at a time."""
        engine = self._engine
        return {
            "steps": engine.steps,
            "fed_rows": engine.fed,
            "samples": engine.advanced,
            "slots": engine.limits.rows,
            "read_tokens": self._network.read_tokens,
            "reused_tokens": engine.path.reused_tokens,
            "calls": self._calls,
            "under_way": self._under_way,
        }

    def serve(self, inbox: Inbox[Request, Result]) -> None:
        network = self._network
        network.deserted = lambda: inbox.deserted
        with torch.inference_mode():
            try:
                while True:
                    jobs = inbox.take()
                    if jobs:
                        self._receive(jobs)
                    elif not self._engine.busy:
                        return
                    self._engine.advance()
            except Deserted:
                self._engine.clear()
            except BaseException:
                self._engine.clear()
                raise
            finally:
                network.deserted = bool  # the model may be another backend's, too

    def close(self) -> None:
        self._engine.clear()
        self._model = self._network = self._engine = None  # type: ignore[assignment]

    # --- requests to work -------------------------------------------------------------------------------------------

    def _receive(self, jobs: Sequence[Job[Request, Result]]) -> None:
        """Render and tokenise; decoding starts with the engine's next step, everything else is done at once."""
        rendered: list[tuple[Job[Request, Result], str]] = []
        for job in jobs:
            job.future.add_done_callback(self._count)
            try:
                if isinstance(job.request, Attend):
                    self._attend(job, job.request)
                    continue
                rendered.append((job, self._renderer.render(job.request.prompt)))
            except Exception as error:  # noqa: BLE001 - such as a prompt that a template refuses: that request's failure alone
                job.finish(error)
        texts = [text for _, text in rendered]
        encoded = self._encoder.encode(texts)
        to_score = [job.request.continuations if isinstance(job.request, Score) else () for job, _ in rendered]
        continuations = self._encoder.continuations_of(texts, encoded, to_score)
        continued = {tuple(ids) for (job, _), ids in zip(rendered, encoded, strict=True) if isinstance(job.request, Continue)}
        scores: list[Scored] = []
        looks: list[Looked] = []
        for (job, _), ids, tokens in zip(rendered, encoded, continuations, strict=True):
            try:
                if isinstance(job.request, Continue):
                    self._engine.submit(self._task(job, job.request, ids))
                elif isinstance(job.request, Score):
                    self._check_length(len(ids) + max(map(len, tokens), default=0))
                    scores.append((job, ids, job.request, tokens))
                elif isinstance(job.request, Look):
                    self._check_length(len(ids))
                    look = (job, tuple(ids), tuple(map(self._hook, job.request.hidden)))
                    if look[1] in continued:
                        self._engine.submit(self._beside(look, job.request))
                    else:
                        looks.append(look)
            except UsageError as error:
                job.finish(error)
        if looks:
            self._look(looks)
        if scores:
            self._score(scores)

    def _count(self, done: Future[Result]) -> None:
        self._calls += not done.cancelled()

    def _attend(self, job: Job[Request, Result], request: Attend) -> None:
        """A pass of its own, beside the engine."""
        if not self.capabilities.attentions:
            raise UsageError(f"attentions: {self.name} offers none; use a causal language model.")
        text = self._renderer.render(request.prompt)
        (ids,) = self._encoder.encode([text])
        (continuation,) = self._encoder.continuations(text, ids, [request.continuation])
        self._check_length(len(ids) + len(continuation))

        def work(_: Sequence[tuple[Any, ...]]) -> None:
            job.finish(attend(self._model, self._detokenizer, ids, continuation))

        with self._network.frequencies.turned(self._network.frequencies.is_long(len(ids) + len(continuation))):
            self._halving([[(job, ids)]], work, "the attention")

    def _task(self, job: Job[Request, Result], request: Continue, ids: list[int]) -> Task:
        self._check_length(len(ids) + request.decoding.max_tokens)
        watch = StopWatch(request.decoding.stop, self._detokenizer) if request.decoding.stop else None
        return Task(job, request, tuple(ids), tuple(map(self._hook, request.hidden)), watch)

    def _beside(self, look: Looked, request: Look) -> Task:
        """A prompt that is read to be continued, in the same pass, has its states by the way: they come with a token of its."""
        job, ids, hooks = look
        inner: Job[Request, Result] = Job(Continue(request.prompt, 1, _ONE_TOKEN, request.hidden))
        inner.hurried = job.hurried

        def pass_on(done: Future[Result]) -> None:
            failure = done.exception()
            samples = done.result() if failure is None else None
            if isinstance(samples, Samples):
                job.finish(PromptStates(tuple(states[0] for states in samples.states), len(ids)))
            elif isinstance(failure, Exception):
                job.finish(failure)

        inner.future.add_done_callback(pass_on)
        assert isinstance(inner.request, Continue)
        return Task(inner, inner.request, ids, hooks, None)

    def _look(self, items: Sequence[Looked]) -> None:
        def work(chunk: Sequence[Looked]) -> None:
            by_prompt: dict[tuple[int, ...], list[Looked]] = {}
            for item in chunk:
                by_prompt.setdefault(item[1], []).append(item)
            prompts = list(by_prompt)
            self._network.wanted = frozenset(hook for _, _, hooks in chunk for hook in hooks)
            for places, captured in self._apart.ends(prompts, self._at_once):
                states = {hook: state.float().cpu().numpy() for hook, state in captured.items()}
                for row, place in enumerate(places):
                    for job, ids, hooks in by_prompt[prompts[place]]:
                        job.finish(PromptStates(tuple(states[hook][row].copy() for hook in hooks), len(ids)))

        for job, ids, hooks in items:
            if not hooks:
                job.finish(PromptStates((), len(ids)))
        for long in (False, True):
            wanting = [item for item in items if item[2] and self._network.frequencies.is_long(len(item[1])) is long]
            if wanting:
                with self._network.frequencies.turned(long):
                    self._halving([wanting], work, "the reading")

    def _halving(self, chunks: Iterable[Sequence[Item]], work: Callable[[Sequence[Item]], None], what: str) -> None:
        """Work on chunks of (job, ids, ...), smaller ones where memory runs out; one alone again, where nothing is held for
        later any more."""
        waiting, emptied = deque(chunks), False
        while waiting:
            chunk = waiting.popleft()
            try:
                work(chunk)
                emptied = False
            except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
                self._engine.path.forget()
                if len(chunk) > 1:
                    waiting.extendleft((chunk[len(chunk) // 2 :], chunk[: len(chunk) // 2]))
                elif not emptied:
                    waiting.appendleft(chunk)
                else:
                    job, ids, *_ = chunk[0]
                    job.finish(does_not_fit(what, len(ids)))
                emptied = True

    def _hook(self, spec: StateSpec) -> StateHook:
        if not self.capabilities.hidden_states:
            if self._network.hooks.available:
                raise UsageError(
                    f"hidden states: {self.name} offers none; use a signal that needs only text, such as consistency."
                )
            self._network.hooks.resolve(spec)  # which says why
        if spec.position == "fed_eos" and not self._eos:
            raise UsageError(
                f"hidden states at the end of a sequence: {self.name} has no end-of-sequence token. "
                "Use a signal without hidden states, such as perplexity (in Python: StateSpec(position='predicting'))."
            )
        return self._network.hooks.resolve(spec)

    def _check_length(self, tokens: int) -> None:
        if self._context is not None and tokens > self._context:
            raise PromptTooLong(self.name, tokens, self._context)

    def _score(self, items: Sequence[Scored]) -> None:
        most = self._network.piece
        # One token needs a pass over the prompt alone.
        short = [item for item in items if max(map(len, item[3]), default=0) <= 1]
        longer = [item for item in items if max(map(len, item[3]), default=0) > 1]
        chunks = [short] if short else []
        chunks += [[longer[at] for at in chunk] for chunk in by_length([len(ids) for _, ids, _, _ in longer], most)]

        def work(chunk: Sequence[Scored]) -> None:
            prompts, tokens = [tuple(ids) for _, ids, _, _ in chunk], [tokens for *_, tokens in chunk]
            results = self._logprobs(prompts, tokens)
            for (job, ids, request, _), logprobs in zip(chunk, results, strict=True):
                if any(math.isnan(number) for numbers in logprobs for number in numbers):
                    job.finish(not_finite())
                pairs = zip(request.continuations, logprobs, strict=True)
                job.finish(tuple(ContinuationScore(text, tuple(numbers), len(ids)) for text, numbers in pairs))

        self._halving(chunks, work, "the continuations")

    def _logprobs(self, prompts: Sequence[tuple[int, ...]], tokens: Sequence[list[list[int]]]) -> list[list[list[float]]]:
        """Of the tokens of continuations; those that make a prompt a long text apart, where frequencies depend on that."""
        frequencies = self._network.frequencies
        results: list[list[list[float]]] = [[[] for _ in several] for several in tokens]
        for long in (False, True):
            places = [
                (at, [number for number, one in enumerate(several) if frequencies.is_long(len(prompt) + len(one)) is long])
                for at, (prompt, several) in enumerate(zip(prompts, tokens, strict=True))
            ]
            places = [(at, numbers) for at, numbers in places if numbers or not (long or tokens[at])]
            if not places:
                continue
            read, to_score = (
                [prompts[at] for at, _ in places],
                [[tokens[at][number] for number in numbers] for at, numbers in places],
            )
            with frequencies.turned(long):
                if max((len(one) for several in to_score for one in several), default=0) <= 1:
                    all_scores = score_next(self._apart, read, to_score, self._at_once)
                else:
                    all_scores = score(self._apart, read, to_score)
            for (at, numbers), scores in zip(places, all_scores, strict=True):
                for number, logprobs in zip(numbers, scores, strict=True):
                    results[at][number] = logprobs
        return results


def is_encoder_decoder(model: Any) -> bool:
    """Whether one part of the model reads and another replies."""
    return bool(getattr(model.config, "is_encoder_decoder", False))


def _seq2seq(network: Network, wanted: Attention, tokenizer: Any) -> DecodePath:
    """The one path for models whose decoder replies to what an encoder has read."""
    if wanted != "auto":
        raise InvalidSetting(f"setting 'model.attention': got {wanted!r} for a sequence-to-sequence model, expected 'auto'.")
    start, closing = starting_tokens(network.model), closing_tokens(tokenizer)
    path = EncoderDecoder(network, tokenizer.pad_token_id or 0, start, closing)
    path.check()
    return path


def _piece(model: Any) -> int:
    """Tokens that are read in one pass. A few hundred keep a processor busy; more of a larger model's would only keep rows, and
    whoever interrupts, waiting."""
    if model.device.type != "cpu":
        return PREFILL_TOKENS
    return min(PREFILL_TOKENS, max(_SHORT_PIECE, _PRODUCTS // _weights(model)))


def _under_way(model: Any) -> int:
    """Questions whose calls are worth having under way at a time. A processor gains little from more than a few rows a step,
    unless a pass takes so little that calling it is most of the work; each question more makes the first one wait."""
    if model.device.type != "cpu":
        return _MOST_QUESTIONS
    return min(_MOST_QUESTIONS, max(_FEW_QUESTIONS, 2 * torch.get_num_threads(), _LIGHT // _weights(model)))


def _weights(model: Any) -> int:
    """About how many products a token takes."""
    layers: int = sum(getattr(one, "in_features", 0) * getattr(one, "out_features", 0) for one in model.modules())
    parameters: int = sum(one.numel() for one in model.parameters())
    return max(1, layers, parameters)


def _cache_bytes(megabytes: int | None, device: torch.device) -> int:
    """The budget for what is being continued, in bytes."""
    if megabytes is not None:
        return megabytes * 2**20
    return torch.cuda.mem_get_info(device)[0] * 3 // 5 if device.type == "cuda" else free_memory() // 8


def _prefix_bytes(megabytes: int | None, per_token: int, device: torch.device) -> int:
    """The budget for beginnings of prompts, in bytes."""
    if megabytes is not None:
        return megabytes * 2**20
    if device.type == "cuda":
        total = torch.cuda.get_device_properties(device).total_memory
    else:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(_PREFIX_TOKENS * per_token, total // 8)


Scored = tuple[Job[Request, Result], list[int], Score, list[list[int]]]
"""A request, the prompt's tokens, and those of the continuations."""
Looked = tuple[Job[Request, Result], tuple[int, ...], tuple[StateHook, ...]]
"""A request, the prompt's tokens, and where to look."""


def context_length(model: Any, tokenizer: Any, setting: int = 0) -> int | None:
    """Most tokens a prompt and its reply may have; None where neither model nor tokenizer names a limit. A ``setting`` (0:
    none) takes the tokenizer's place, and makes the model's shorter.

    Positions relative to each other (T5) end nowhere: such a tokenizer's limit is the length of training texts."""
    config = model.config.get_text_config()
    own = getattr(config, "max_position_embeddings", None)
    if own:
        return min(int(own), setting or int(own))
    relative = getattr(config, "relative_attention_num_buckets", None) is not None
    limit = setting or (None if relative else tokenizer.model_max_length)
    return int(limit) if limit and limit < 10**9 else None


def _cache_bytes_per_token(model: Any) -> int:
    """Keys and values of one token over all layers, each of which may have heads of its own."""
    config = model.config.get_text_config()
    count = int(getattr(config, "num_hidden_layers", 1))
    # A configuration that differs by layer answers for one at a time.
    layers = list(getattr(config, "per_layer_config", None) or [config] * count)
    numbers = sum(_cached_numbers(one) for one in layers)
    return int(max(1, 2 * numbers * model.dtype.itemsize))


def _cached_numbers(layer: Any) -> int:
    heads = getattr(layer, "num_attention_heads", None) or 1
    size = getattr(layer, "head_dim", None) or getattr(layer, "hidden_size", heads) // heads
    return int((getattr(layer, "num_key_value_heads", None) or heads) * size)

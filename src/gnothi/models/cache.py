"""Keeps what a model replied, on disk, and gives it again to exactly the same request.

The same request: the same model (as whoever opens it identifies it), the same rendered prompt, operation, decoding settings
with seed, number of samples, hidden states, continuations. Errors are never kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gnothi.models.identity import content
from gnothi.models.settings import CallCache
from gnothi.models.store import Store, folder
from gnothi.models.wrappers import Wrapper, note_hit
from gnothi.protocols import LanguageModel
from gnothi.types import ContinuationScore, Decoding, Generation, Prompt, PromptStates, Samples, StateSpec, Token

T = TypeVar("T")

FORMAT = 1
"""Part of every key: replies kept in another form are not found."""


def key_of(identity: Mapping[str, Any], request: Mapping[str, Any]) -> bytes:
    """A digest that two requests share only if they are the same; both mappings hold plain JSON values."""
    text = json.dumps([FORMAT, identity, request], sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.blake2b(text.encode("utf-8", errors="surrogatepass"), digest_size=24).digest()


class Cached(Wrapper):
    """``identity`` is what tells the model from every other one, ``rendered`` what a reply depends on in a prompt."""

    def __init__(
        self, model: LanguageModel, store: Store, identity: Mapping[str, Any], rendered: Callable[[Prompt], str]
    ) -> None:
        super().__init__(model)
        self._store = store
        self._identity = dict(identity)
        self._rendered = rendered
        self._disk = ThreadPoolExecutor(1, "gnothi-cache")

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        key = self._key("generate", prompt, decoding=_plain(decoding))
        samples = await self._kept(key, _read_samples)
        if samples is None:
            generation = await self._model.generate(prompt, decoding)
            await self._keep(key, _write_samples(Samples((generation,))))
            return generation
        return samples.generations[0]

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        states = [asdict(spec) for spec in hidden] or None
        key = self._key("sample", prompt, decoding=_plain(decoding), n=n, hidden=states)
        samples = await self._kept(key, _read_samples)
        if samples is None:
            samples = await self._model.sample(prompt, n, decoding, hidden)
            await self._keep(key, _write_samples(samples))
        return samples

    async def states(self, prompt: Prompt, hidden: Sequence[StateSpec]) -> PromptStates:
        key = self._key("states", prompt, hidden=[asdict(spec) for spec in hidden])
        found = await self._kept(key, _read_prompt_states)
        if found is None:
            found = await self._model.states(prompt, hidden)
            await self._keep(key, _write_prompt_states(found))
        return found

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        key = self._key("score", prompt, continuations=list(continuations))
        scores = await self._kept(key, _read_scores)
        if scores is None:
            scores = await self._model.score(prompt, continuations)
            await self._keep(key, _write_scores(scores))
        return scores

    async def aclose(self) -> None:
        self._disk.shutdown(wait=True)
        self._store.close()
        await super().aclose()

    def _key(self, operation: str, prompt: Prompt, **rest: Any) -> bytes:
        return key_of(self._identity, {"operation": operation, "prompt": self._rendered(prompt), **rest})

    async def _kept(self, key: bytes, read: Callable[[bytes], T]) -> T | None:
        value = await asyncio.get_running_loop().run_in_executor(self._disk, self._store.get, key)
        if value is None:
            return None
        try:
            result = read(value)
        except (ValueError, KeyError, TypeError, zlib.error):
            return None  # an entry that was damaged is asked for again, and replaced
        note_hit()
        return result

    async def _keep(self, key: bytes, value: bytes) -> None:
        await asyncio.get_running_loop().run_in_executor(self._disk, self._store.put, key, value)


# --- replies to bytes: four bytes of length, compressed JSON of that length, the states as float32 ---------------------


def _write_samples(samples: Samples) -> bytes:
    data = {
        "generations": [_generation(generation) for generation in samples.generations],
        "shapes": [list(states.shape) for states in samples.states],
    }
    return _pack(data, _bytes(samples.states))


def _read_samples(value: bytes) -> Samples:
    data, raw = _unpack(value)
    states = _arrays(raw, data.get("shapes", ()))  # replies that were kept before there could be several states have none
    generations = tuple(
        Generation(text, tuple(Token(*token) for token in tokens), finish, prompt_tokens, generated_tokens)
        for text, tokens, finish, prompt_tokens, generated_tokens in data["generations"]
    )
    if not generations:
        raise ValueError("an entry without generations")
    return Samples(generations, states)


def _write_prompt_states(found: PromptStates) -> bytes:
    data = {"shapes": [list(state.shape) for state in found.states], "prompt_tokens": found.prompt_tokens}
    return _pack(data, _bytes(found.states))


def _read_prompt_states(value: bytes) -> PromptStates:
    data, raw = _unpack(value)
    return PromptStates(_arrays(raw, data["shapes"]), data["prompt_tokens"])


def _bytes(states: Sequence[NDArray[np.float32]]) -> bytes:
    return b"".join(np.ascontiguousarray(state, dtype="<f4").tobytes() for state in states)


def _arrays(raw: bytes, shapes: Sequence[Sequence[int]]) -> tuple[NDArray[np.float32], ...]:
    numbers = np.frombuffer(raw, dtype="<f4").astype(np.float32)
    ends = np.cumsum([math.prod(shape) for shape in shapes], dtype=int).tolist()
    if ends[-1:] != ([len(numbers)] if shapes else []):
        raise ValueError("an entry with too few states, or too many")
    return tuple(numbers[end - math.prod(shape) : end].reshape(shape).copy() for shape, end in zip(shapes, ends, strict=True))


def _write_scores(scores: Sequence[ContinuationScore]) -> bytes:
    return _pack({"scores": [[score.text, list(score.logprobs), score.prompt_tokens] for score in scores]}, b"")


def _read_scores(value: bytes) -> tuple[ContinuationScore, ...]:
    data, _ = _unpack(value)
    return tuple(ContinuationScore(text, tuple(logprobs), prompt_tokens) for text, logprobs, prompt_tokens in data["scores"])


def _generation(generation: Generation) -> list[Any]:
    tokens = [[token.text, token.logprob, token.logsumexp, token.id] for token in generation.tokens]
    return [generation.text, tokens, generation.finish, generation.prompt_tokens, generation.generated_tokens]


def _pack(data: Mapping[str, Any], raw: bytes) -> bytes:
    # Infinities are written as Python writes them: an impossible token has log-probability -inf.
    packed = zlib.compress(json.dumps(data).encode(), 3)
    return len(packed).to_bytes(4, "big") + packed + raw


def _unpack(value: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(value[:4], "big")
    data = json.loads(zlib.decompress(value[4 : 4 + length]))
    if not isinstance(data, dict):
        raise ValueError("an entry of another kind")
    return data, value[4 + length :]


def _plain(decoding: Decoding) -> dict[str, Any]:
    return {**asdict(decoding), "stop": list(decoding.stop)}


# --- opening -----------------------------------------------------------------------------------------------------------


def open_store(settings: CallCache, *, by_default: bool) -> Store | None:
    """The store that the settings ask for; None where calls are not to be kept. ``by_default`` is what ``auto`` means."""
    if settings.cache == "off" or (settings.cache == "auto" and not by_default):
        return None
    return Store(folder(), settings.calls_mb * 2**20, _say)


def _say(text: str) -> None:
    """On stderr, unless a program that uses this package has set up its logging differently."""
    logging.getLogger("gnothi").warning("gnothi: %s", text)


def keep_local(
    model: Wrapper, settings: CallCache, source: str, commit: str | None, rendered: Callable[[Prompt], str]
) -> Wrapper:
    """A model that runs here, its calls kept where the settings ask for it.

    ``source`` is its folder or hub id, ``commit`` the hub's version of it."""
    if (store := open_store(settings, by_default=False)) is None:
        return model
    version = content(source) if Path(source).expanduser().is_dir() else str(commit)
    return Cached(model, store, {"kind": "local", "version": version, **model.metadata}, rendered)

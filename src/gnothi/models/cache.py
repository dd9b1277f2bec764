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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, astuple, dataclass
from typing import Any, Generic, TypeVar

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
        async def ask() -> Samples:
            return Samples((await self._model.generate(prompt, decoding),))

        key = self._key("generate", prompt, decoding=_plain(decoding))
        return (await self._through(key, _SAMPLES, ask)).generations[0]

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        states = [asdict(spec) for spec in hidden] or None
        key = self._key("sample", prompt, decoding=_plain(decoding), n=n, hidden=states)
        return await self._through(key, _SAMPLES, lambda: self._model.sample(prompt, n, decoding, hidden))

    async def states(self, prompt: Prompt, hidden: Sequence[StateSpec]) -> PromptStates:
        key = self._key("states", prompt, hidden=[asdict(spec) for spec in hidden])
        return await self._through(key, _STATES, lambda: self._model.states(prompt, hidden))

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        key = self._key("score", prompt, continuations=list(continuations))
        return await self._through(key, _SCORES, lambda: self._model.score(prompt, continuations))

    async def aclose(self) -> None:
        self._disk.shutdown(wait=True)
        self._store.close()
        await super().aclose()

    def _key(self, operation: str, prompt: Prompt, **rest: Any) -> bytes:
        return key_of(self._identity, {"operation": operation, "prompt": self._rendered(prompt), **rest})

    async def _through(self, key: bytes, form: _Form[T], ask: Callable[[], Awaitable[T]]) -> T:
        """What is kept, else what the model says, which is then kept."""
        loop = asyncio.get_running_loop()
        value = await loop.run_in_executor(self._disk, self._store.get, key)
        if value is not None:
            try:
                result = form.read(*_unpack(value))
            except (ValueError, KeyError, TypeError, zlib.error):
                pass  # an entry that was damaged is asked for again, and replaced
            else:
                note_hit()
                return result
        result = await ask()
        await loop.run_in_executor(self._disk, self._store.put, key, _pack(*form.write(result)))
        return result


# --- replies to bytes: four bytes of length, compressed JSON of that length, the states as float32 ---------------------

States = tuple[NDArray[np.float32], ...]


@dataclass(frozen=True)
class _Form(Generic[T]):
    """A kind of reply as plain JSON values and states, and back."""

    write: Callable[[T], tuple[dict[str, Any], States]]
    read: Callable[[dict[str, Any], States], T]


def _samples(data: dict[str, Any], states: States) -> Samples:
    generations = tuple(
        Generation(text, tuple(Token(*token) for token in tokens), *rest) for text, tokens, *rest in data["generations"]
    )
    if not generations:
        raise ValueError("an entry without generations")
    return Samples(generations, states)


_SAMPLES = _Form(lambda result: ({"generations": [astuple(one) for one in result.generations]}, result.states), _samples)
_STATES = _Form[PromptStates](
    lambda result: ({"prompt_tokens": result.prompt_tokens}, result.states),
    lambda data, states: PromptStates(states, data["prompt_tokens"]),
)
_SCORES = _Form[tuple[ContinuationScore, ...]](
    lambda result: ({"scores": [[one.text, one.logprobs, one.prompt_tokens] for one in result]}, ()),
    lambda data, _: tuple(ContinuationScore(text, tuple(logprobs), tokens) for text, logprobs, tokens in data["scores"]),
)


def _pack(data: dict[str, Any], states: States) -> bytes:
    # Infinities are written as Python writes them: an impossible token has log-probability -inf.
    packed = zlib.compress(json.dumps(data | {"shapes": [state.shape for state in states]}).encode(), 3)
    raw = b"".join(np.ascontiguousarray(state, dtype="<f4").tobytes() for state in states)
    return len(packed).to_bytes(4, "big") + packed + raw


def _unpack(value: bytes) -> tuple[dict[str, Any], States]:
    length = int.from_bytes(value[:4], "big")
    data = json.loads(zlib.decompress(value[4 : 4 + length]))
    if not isinstance(data, dict):
        raise ValueError("an entry of another kind")
    # Replies that were kept before there could be several states, and scores, have no shapes.
    shapes = data.get("shapes", ())
    numbers = np.frombuffer(value[4 + length :], dtype="<f4").astype(np.float32)
    ends = np.cumsum([math.prod(shape) for shape in shapes], dtype=int).tolist()
    if ends[-1:] != ([len(numbers)] if shapes else []):
        raise ValueError("an entry with too few states, or too many")
    pieces = np.split(numbers, ends[:-1]) if shapes else []
    return data, tuple(piece.reshape(shape).copy() for piece, shape in zip(pieces, shapes, strict=True))


def _plain(decoding: Decoding) -> dict[str, Any]:
    plain = {**asdict(decoding), "stop": list(decoding.stop)}
    if not decoding.first:  # the keys of all that was kept before there were parts of a draw
        del plain["first"]
    return plain


REMARKS = frozenset({"attention_reason", "trial", "ffn", "states", "frequencies", "prompts_together"})
"""What a model says of how it runs and replies do not depend on."""

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

    ``source`` is its file, folder or hub id, ``commit`` the hub's version of it, or of what an adapter changes."""
    if (store := open_store(settings, by_default=False)) is None:
        return model
    version = "".join(dict.fromkeys((commit or "", content(source))))
    metadata = {key: value for key, value in model.metadata.items() if key not in REMARKS}
    # Replies of versions that did not separate thoughts are not used.
    return Cached(model, store, {"kind": "local", "version": version, "thoughts": "apart", **metadata}, rendered)

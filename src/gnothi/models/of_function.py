"""A model that is a function of a text: it is asked in plain completion, and can nothing but write."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting, MissingCapability, ModelUnavailable
from gnothi.models.rendering import Plain
from gnothi.own_code import running
from gnothi.protocols import LanguageModel
from gnothi.types import Capabilities, Decoding, Generation, Profile, Prompt, Samples, StateSpec


class OfFunction:
    """``function`` takes the whole prompt and returns the reply, or an awaitable of it; one that is not ``async`` is asked in a
    thread, by several at once. Temperature and length are its own affair; what follows a stop string is cut off."""

    capabilities = Capabilities()
    profile = Profile()

    def __init__(self, function: Callable[[str], Any], name: str | None = None) -> None:
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.function = function

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        """Raises ModelUnavailable for what is no text."""
        text, function = Plain().render(prompt), self.function
        with running(f"model {self.name!r}"):
            reply = function(text) if inspect.iscoroutinefunction(function) else await asyncio.to_thread(function, text)
            reply = await reply if inspect.isawaitable(reply) else reply
        if not isinstance(reply, str):
            raise ModelUnavailable(f"model {self.name!r}: the function gave {reply!r:.80}, expected a text.")
        cuts = [place for stop in decoding.stop if stop and (place := reply.find(stop)) >= 0]
        return Generation(reply[: min(cuts)], finish="stop") if cuts else Generation(reply)

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        if hidden:
            self._lacks("hidden_states")
        return Samples(tuple(await gather(*(self.generate(prompt, decoding) for _ in range(n)))))

    async def states(self, prompt: Prompt, hidden: Sequence[StateSpec]) -> NoReturn:  # noqa: ARG002
        self._lacks("hidden_states")

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> NoReturn:  # noqa: ARG002
        self._lacks("scoring")

    async def attend(self, prompt: Prompt, continuation: str) -> NoReturn:  # noqa: ARG002
        self._lacks("attentions")

    async def aclose(self) -> None:
        """Nothing is held."""

    def _lacks(self, what: str) -> NoReturn:
        raise MissingCapability("a call", self, [what], "A function only writes texts.")


def from_function(function: Callable[[str], Any], name: str | None = None) -> LanguageModel:
    """A model that is a function of a text, ``async`` or not; ``name`` (None: the function's) is what records call it.

    It can nothing but write: what needs probabilities or hidden states is refused. Raises InvalidSetting for what does not take
    one text."""
    try:
        takes = inspect.signature(function)
        takes.bind("prompt")
    except TypeError:
        raise InvalidSetting(f"model: got {function!r:.80}, expected a function of one text, the prompt.") from None
    except ValueError:  # it does not say what it takes
        pass
    return OfFunction(function, name)


def as_model(model: Any) -> Any:
    """A function as a model; anything else as it is. Raises as ``from_function``."""
    plain = callable(model) and not isinstance(model, type | LanguageModel) and not hasattr(model, "generate")
    return from_function(model) if plain else model

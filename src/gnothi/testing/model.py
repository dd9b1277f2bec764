"""A scripted model: a function from prompt to reply, for tests of everything that talks to a model.

    model = Scripted({("answer", "Who wrote Emma?"): Reply("Jane Austen", doubt=0.1)}, default="unknown")

It offers every capability (unless told otherwise), answers at once, and is deterministic.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
from numpy.typing import NDArray

from gnothi.errors import InvalidSetting
from gnothi.models.sampling import check_states
from gnothi.types import (
    Attended,
    Capabilities,
    ContinuationScore,
    Decoding,
    Finish,
    Generation,
    Profile,
    Prompt,
    PromptStates,
    Samples,
    StateSpec,
    Token,
)

EVERYTHING = Capabilities(logprobs=True, hidden_states=True, scoring=True, energy=True, attentions=True)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the scripted model says. ``logprobs`` holds one number per word (missing ones repeat the last);
    ``doubt`` is the spread of the hidden states of samples of this prompt: 0 gives equal rows, so the lowest U there is."""

    text: str
    logprobs: tuple[float, ...] = (-0.1,)
    doubt: float = 0.0


Line = str | Reply
Script = Callable[[Prompt], Line | Sequence[Line]] | Mapping[str | tuple[str, str], Line | Sequence[Line]]
Scorer = Callable[[Prompt, str], float]


class Scripted:
    """``script`` is a function of the prompt, or a mapping from question or (task name, question) to a reply.

    A reply is a text or a ``Reply``; a sequence of them are alternatives: ``generate`` says the first, row i of ``sample``
    the i-th, in turn. ``default`` answers what a mapping lacks (None: a KeyError). Tokens are words with the whitespace
    before them. States are ``hidden_size`` numbers per row: a direction fixed by the prompt and the state that was asked for,
    plus ``doubt`` times seeded noise. ``scorer`` gives a continuation's log-probability, spread evenly over its words; without
    it a continuation that the script's first reply starts with has 0.9, any other 0.1. ``prompts`` lists every call's prompt.
    """

    def __init__(
        self,
        script: Script,
        *,
        name: str = "scripted",
        default: Line | None = None,
        capabilities: Capabilities = EVERYTHING,
        scorer: Scorer | None = None,
        hidden_size: int = 32,
        thresholds: Mapping[str, float] | None = None,
    ) -> None:
        self.name = name
        self.profile = Profile(thresholds=thresholds or {})
        self.capabilities = capabilities
        self.prompts: list[Prompt] = []
        self._script = script
        self._default = default
        self._scorer = scorer
        self._hidden_size = hidden_size

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        self.prompts.append(prompt)
        return self._say(prompt, self._replies(prompt)[0], decoding)

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        if n < 1:
            raise InvalidSetting(f"cannot sample: got n = {n}, expected at least 1.")
        self.prompts.append(prompt)
        replies = self._replies(prompt)
        chosen = [replies[(decoding.first + i) % len(replies)] for i in range(n)]
        states = tuple(self._states(prompt, spec, chosen, decoding.seed or 0, decoding.first) for spec in hidden)
        return Samples(tuple(self._say(prompt, reply, decoding) for reply in chosen), states)

    async def states(self, prompt: Prompt, hidden: Sequence[StateSpec]) -> PromptStates:
        """Those of the first row of a sample."""
        check_states(hidden)
        self.prompts.append(prompt)
        first = self._replies(prompt)[:1]
        return PromptStates(tuple(self._states(prompt, spec, first, 0)[0] for spec in hidden), _prompt_tokens(prompt))

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> tuple[ContinuationScore, ...]:
        self.prompts.append(prompt)
        return tuple(self._score(prompt, continuation) for continuation in continuations)

    async def attend(self, prompt: Prompt, continuation: str) -> Attended:
        """A word looks at the word before it and, as much again, at all before it and itself alike. The entropy of a word's
        prediction is minus its (first) log-probability in the script's first reply, 0.1 for a word that this does not have."""
        self.prompts.append(prompt)
        reply = self._replies(prompt)[0]
        log_probabilities: dict[str, float] = {}
        for word, number in zip(_words(reply.text), chain(reply.logprobs, repeat(reply.logprobs[-1])), strict=False):
            log_probabilities.setdefault(word.strip(), number)
        read = f"{prompt.question} {prompt.answer_so_far}".strip()
        before, words = _words(read), _words(f" {continuation.strip()}")
        total = len(before) + len(words)
        attention = np.zeros((len(words), total), np.float32)
        for row in range(len(words)):
            place = len(before) + row
            attention[row, : place + 1] = 0.5 / (place + 1)
            attention[row, max(place - 1, 0)] += 0.5
        entropies = np.array([-log_probabilities.get(word.strip(), -0.1) for word in words], np.float32)
        return Attended((*before, *words), entropies, attention)

    async def aclose(self) -> None:
        return None

    def _replies(self, prompt: Prompt) -> list[Reply]:
        lines: Line | Sequence[Line]
        if isinstance(self._script, Mapping):
            scripted = self._script.get((prompt.task.name, prompt.question), self._script.get(prompt.question, self._default))
            if scripted is None:
                raise KeyError(
                    f"the script has no reply to task {prompt.task.name!r}, question {prompt.question!r}, and no default"
                )
            lines = scripted
        else:
            lines = self._script(prompt)
        several = [lines] if isinstance(lines, str | Reply) else list(lines)
        return [Reply(line) if isinstance(line, str) else line for line in several]

    def _say(self, prompt: Prompt, reply: Reply, decoding: Decoding) -> Generation:
        text, finish = reply.text, _FINISHED
        cuts = [at for at in (text.find(stop) for stop in decoding.stop if stop) if at >= 0]
        if cuts:
            text, finish = text[: min(cuts)], "stop"
        words = _words(text)
        if len(words) > decoding.max_tokens:
            words, finish = words[: decoding.max_tokens], "length"
        numbers = (
            [reply.logprobs[min(i, len(reply.logprobs) - 1)] for i in range(len(words))] if self.capabilities.logprobs else []
        )
        energy = self.capabilities.energy
        tokens = tuple(
            Token(word, number, 10.0 + number if energy else None) for word, number in zip(words, numbers, strict=False)
        )
        return Generation("".join(words), tokens, finish, _prompt_tokens(prompt), len(words) + (finish == "eos"))

    def _score(self, prompt: Prompt, continuation: str) -> ContinuationScore:
        if self._scorer is not None:
            total = self._scorer(prompt, continuation)
        else:
            expected = self._replies(prompt)[0].text.strip().startswith(continuation.strip())
            total = math.log(0.9 if expected else 0.1)
        count = len(_words(continuation))
        return ContinuationScore(continuation, tuple(total / count for _ in range(count)))

    def _states(
        self, prompt: Prompt, spec: StateSpec, replies: Sequence[Reply], seed: int, first: int = 0
    ) -> NDArray[np.float32]:
        seeds = np.frombuffer(repr((prompt, spec)).encode(), np.uint8).astype(
            np.uint32
        )  # a list of them takes numpy milliseconds
        direction = np.random.default_rng(seeds).standard_normal(self._hidden_size)
        rows = range(first, first + len(replies))
        noise = [np.random.default_rng([seed, row]).standard_normal(self._hidden_size) for row in rows]
        doubts = np.array([[reply.doubt] for reply in replies])
        states: NDArray[np.float32] = (direction + doubts * np.stack(noise)).astype(np.float32)
        return states


_FINISHED: Finish = "eos"


def _words(text: str) -> list[str]:
    """Words with the whitespace before them; their concatenation is the text."""
    return re.findall(r"\s*\S+|\s+$", text)


def _prompt_tokens(prompt: Prompt) -> int:
    """Words in the prompt's parts: a stand-in for a token count that grows as a real one would."""
    texts = [prompt.task.instruction, prompt.question, prompt.answer_so_far, *prompt.choices]
    texts += [passage.title + " " + passage.text for passage in prompt.passages]
    return sum(len(text.split()) for text in texts)

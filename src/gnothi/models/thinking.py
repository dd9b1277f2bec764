"""Models that think before they answer: first the thought, to its own end, then the answer, to the task's.

Thoughts are separated here, for every backend that runs a model on this machine: replies hold the answer alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting, PromptTooLong
from gnothi.models.rendering import Begun, Chat, EscapeSpecialTokens, make_renderer
from gnothi.models.settings import HereSettings
from gnothi.models.templates import Template
from gnothi.models.thoughts import begun, split_reply
from gnothi.models.wrappers import Wrapper
from gnothi.protocols import LanguageModel
from gnothi.seeding import derive
from gnothi.types import Decoding, Generation, Profile, Prompt, Samples, StateSpec


def renderer_of(settings: HereSettings, tokenizer: Any, declared: str | None) -> EscapeSpecialTokens:
    """What writes the prompts of a model that runs here. ``declared`` is the renderer that its folder names. Raises
    InvalidSetting, InvalidInput."""
    if settings.thinking_tokens < 1:
        raise InvalidSetting(f"setting 'model.thinking_tokens': got {settings.thinking_tokens}, expected at least 1.")
    renderer = make_renderer(
        settings.renderer,
        tokenizer,
        declared,
        thinking=settings.thinking,
        tokens=settings.thinking_tokens,
        day=settings.date,
    )
    return EscapeSpecialTokens(renderer, tokenizer)


def thinking_first(model: LanguageModel, renderer: EscapeSpecialTokens) -> LanguageModel:
    """The model with its thoughts separated. Any model whose prompts a chat template writes may have thoughts."""
    return ThinksFirst(model, renderer, renderer.inner.template) if isinstance(renderer.inner, Chat) else model


class ThinksFirst(Wrapper):
    """A model whose prompts a chat template writes (``renderer``), thinking as that says.

    With thinking on, a reply that begins afresh is two requests: the thought, which nothing but its own mark or the template's
    limit of tokens ends (at the limit it is closed, and the model answers by what it has thought), and the answer, under the
    task's own limit and stop strings. Everything else comes after an empty thought: what continues an answer, scores, states of
    prompts, attention. A reply that begins a thought in place of an answer is asked for again, behind a closed one.
    """

    def __init__(self, model: LanguageModel, renderer: EscapeSpecialTokens, template: Template) -> None:
        super().__init__(model)
        self._renderer = renderer
        self._template = template
        self._counts = {"thoughts": 0, "thought_tokens": 0, "thoughts_cut": 0}

    @property
    def profile(self) -> Profile:
        return replace(super().profile, date=self._template.day)

    @property
    def metadata(self) -> Mapping[str, str]:
        return {**super().metadata, **self._template.metadata}

    @property
    def statistics(self) -> Mapping[str, int]:
        """Also how many ``thoughts`` there were, of so many tokens, and how many of them were cut at their limit."""
        return {**super().statistics, **self._counts}

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        return (await self.sample(prompt, 1, decoding)).generations[0]

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        if self._template.thinking != "off" and not prompt.answer_so_far.strip():
            samples = await self._with_thoughts(prompt, n, decoding, hidden)
        else:
            samples = await self._answered(prompt, n, decoding, hidden)
        thoughts = [generation for generation in samples.generations if generation.thought_tokens]
        self._counts["thoughts"] += len(thoughts)
        self._counts["thought_tokens"] += sum(generation.thought_tokens for generation in thoughts)
        self._counts["thoughts_cut"] += sum(generation.thought_cut for generation in thoughts)
        return samples

    async def _with_thoughts(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec]) -> Samples:
        """Each sample after a thought of its own. Greedy ones are all the same, and thought once."""
        marks, template = self._template.marks, self._template
        assert marks is not None
        different = n if decoding.temperature > 0 else min(n, 1)
        opened = Begun.of(prompt, thinks=True, labelled=False)
        thinking = replace(decoding, max_tokens=template.tokens, stop=marks.stops)

        async def answered(number: int, thought: Generation) -> Samples:
            before = template.answering(self._renderer.neutral(thought.text))
            after = Begun.of(prompt, thinks=True, before=before)
            return await self._answered(after, 1, _its_own(decoding, number), hidden)

        try:
            thoughts = (await self._model.sample(opened, different, thinking)).generations
            answers = await gather(*(answered(number, thought) for number, thought in enumerate(thoughts)))
        except PromptTooLong as error:
            raise PromptTooLong(*error.arguments, thought=template.tokens) from None
        generations = [_joined(thought, one.generations[0]) for thought, one in zip(thoughts, answers, strict=True)]
        states = tuple(np.concatenate(rows) for rows in zip(*(one.states for one in answers), strict=True))
        return _repeated(Samples(tuple(generations), states), n)

    async def _answered(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec]) -> Samples:
        """Answers alone: replies that begin with a thought, or with its end, are asked for again, behind that. Those that do so
        once more have no answer."""
        thinks, before = (prompt.thinks, prompt.before) if isinstance(prompt, Begun) else (False, "")
        decoding = replace(decoding, stop=decoding.stop + self._template.stops(thought=thinks))
        samples = await self._model.sample(prompt, n, decoding, hidden)
        stray = {place: more for place, one in enumerate(samples.generations) if (more := self._stray(one)) is not None}
        if not stray:
            return samples

        async def again(place: int) -> Samples:
            after = Begun.of(prompt, thinks=thinks, before=before + stray[place])
            return await self._model.sample(after, 1, _its_own(decoding, place), hidden)

        places = list(stray) if decoding.temperature > 0 else [min(stray)]  # greedy ones are all the same
        others = dict(zip(places, await gather(*map(again, places)), strict=True))
        generations, states = list(samples.generations), [one.copy() for one in samples.states]
        for place in stray:
            other = others.get(place, others[places[0]])
            thought = replace(generations[place], text=split_reply(generations[place].text).thought)
            (reply,) = other.generations
            generations[place] = _joined(thought, reply if self._stray(reply) is None else _without_answer(reply))
            for rows, (row,) in zip(states, other.states, strict=True):
                rows[place] = row
        return Samples(tuple(generations), tuple(states))

    def _stray(self, reply: Generation) -> str | None:
        """What has to stand before the answer in place of a reply that begins with a mark; None for one that is an answer."""
        marks = begun(reply.text, cut=reply.finish == "length")
        if marks is not None:
            return marks.nothing
        own = self._template.marks
        return own.closing.lstrip("\n") if own is not None and reply.text.lstrip().startswith(own.closes) else None


def _its_own(decoding: Decoding, number: int) -> Decoding:
    """With chance of its own for the sample of that number: the first samples of more are those of fewer."""
    if decoding.temperature == 0:
        return decoding
    return replace(decoding, seed=derive("after a thought", decoding.seed, decoding.first + number), first=0)


def _joined(thought: Generation, answer: Generation) -> Generation:
    """What was thought, and the answer; the prompt is that before the thought."""
    return replace(
        answer,
        prompt_tokens=thought.prompt_tokens,
        generated_tokens=thought.generated_tokens + answer.generated_tokens,
        thought="\n".join(filter(None, (thought.text.strip(), answer.thought))),
        thought_tokens=thought.generated_tokens + answer.thought_tokens,
        thought_cut=thought.finish == "length" or answer.thought_cut,
    )


def _without_answer(reply: Generation) -> Generation:
    """A reply that is a thought where the answer was due."""
    thought, count = split_reply(reply.text).thought, reply.generated_tokens
    return replace(reply, text="", tokens=(), finish="length", thought=thought, thought_tokens=count, thought_cut=True)


def _repeated(samples: Samples, n: int) -> Samples:
    """Greedy samples, all the same."""
    if len(samples.generations) == n:
        return samples
    return Samples(samples.generations * n, tuple(np.repeat(rows, n, axis=0) for rows in samples.states))

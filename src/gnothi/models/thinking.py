"""Models that think before they answer: first the thought, to its own end, then the answer, to the task's.

Whatever is thought is told apart here, for every backend that runs a model on this machine: replies hold the answer alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting
from gnothi.models.neutral import Neutral
from gnothi.models.rendering import Begun, Chat, make_renderer
from gnothi.models.settings import HereSettings
from gnothi.models.templates import Template
from gnothi.models.thoughts import begun, tell_apart
from gnothi.models.wrappers import Wrapper
from gnothi.protocols import LanguageModel
from gnothi.seeding import derive
from gnothi.types import Decoding, Generation, Profile, Prompt, Samples, StateSpec


def renderer_of(settings: HereSettings, tokenizer: Any, declared: str | None) -> Neutral:
    """What writes the prompts of a model that runs here. ``declared`` is the renderer that its folder names. Raises
    InvalidSetting, InvalidInput."""
    if settings.thinking_tokens < 1:
        raise InvalidSetting(f"setting 'model.thinking_tokens': got {settings.thinking_tokens}, expected at least 1.")
    made = make_renderer(
        settings.renderer,
        tokenizer,
        declared,
        thinking=settings.thinking,
        tokens=settings.thinking_tokens,
        day=settings.date,
    )
    return Neutral(made, tokenizer)


def thinking_first(model: LanguageModel, renderer: Neutral) -> LanguageModel:
    """The model, its thoughts told apart: any whose prompts a chat template writes may have some."""
    return ThinksFirst(model, renderer, renderer.inner.template) if isinstance(renderer.inner, Chat) else model


class ThinksFirst(Wrapper):
    """A model whose prompts a chat template writes (``renderer``), thinking as that says.

    With thinking on, a reply that begins afresh is two requests: the thought, which nothing but its own mark or the template's
    limit of tokens ends (at the limit it is closed, and the model answers by what it has thought), and the answer, under the
    task's own limit and stop strings. Everything else comes after an empty thought: what continues an answer, scores, states of
    prompts, attention. With thinking off, a reply that begins a thought all the same is asked for again, behind a closed one.
    """

    def __init__(self, model: LanguageModel, renderer: Neutral, template: Template) -> None:
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
            found = await self._thought_over(prompt, n, decoding, hidden)
        else:
            stop = decoding.stop + self._template.stops(thought=False)
            found = await self._model.sample(prompt, n, replace(decoding, stop=stop), hidden)
            found = await self._asked_again(prompt, found, replace(decoding, stop=stop), hidden)
        thoughts = [one for one in found.generations if one.thought_tokens]
        self._counts["thoughts"] += len(thoughts)
        self._counts["thought_tokens"] += sum(one.thought_tokens for one in thoughts)
        self._counts["thoughts_cut"] += sum(one.thought_cut for one in thoughts)
        return found

    async def _thought_over(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec]) -> Samples:
        """Each sample after a thought of its own. Greedy ones are all the same, and thought once."""
        marks, template = self._template.marks, self._template
        assert marks is not None
        different = n if decoding.temperature > 0 else 1
        thinking = replace(decoding, max_tokens=template.tokens, stop=marks.stops)
        opened = Begun.of(prompt, thinks=True, labelled=False)
        thoughts = (await self._model.sample(opened, different, thinking)).generations
        answering = replace(decoding, stop=decoding.stop + template.stops(thought=True))

        async def answered(number: int, thought: Generation) -> Samples:
            before = template.answering(self._renderer.neutral(thought.text))
            after = Begun.of(prompt, thinks=True, before=before)
            return await self._model.sample(after, 1, _its_own(answering, number), hidden)

        answers = await gather(*(answered(number, thought) for number, thought in enumerate(thoughts)))
        pairs = zip(thoughts, answers, strict=True)
        generations = [_joined(thought, _answer_alone(one.generations[0])) for thought, one in pairs]
        states = tuple(np.concatenate(rows) for rows in zip(*(one.states for one in answers), strict=True))
        return _repeated(Samples(tuple(generations), states), n)

    async def _asked_again(self, prompt: Prompt, found: Samples, decoding: Decoding, hidden: Sequence[StateSpec]) -> Samples:
        """``found``, with replies that begin with a thought in place of an answer asked for again, after an empty thought."""
        stray = {
            place: marks
            for place, one in enumerate(found.generations)
            if (marks := begun(one.text, cut=one.finish == "length")) is not None
        }
        if not stray:
            return found

        async def again(place: int) -> Samples:
            after = Begun.of(prompt, before=stray[place].nothing)
            return await self._model.sample(after, 1, _its_own(decoding, place), hidden)

        places = list(stray) if decoding.temperature > 0 else [min(stray)]
        others = dict(zip(places, await gather(*map(again, places)), strict=True))
        generations, states = list(found.generations), [one.copy() for one in found.states]
        for place in stray:
            other = others.get(place) or others[places[0]]
            first = found.generations[place]
            thought = tell_apart(first.text).thought
            generations[place] = _joined(replace(first, text=thought), _answer_alone(other.generations[0]))
            for rows, (row,) in zip(states, other.states, strict=True):
                rows[place] = row
        return Samples(tuple(generations), tuple(states))


def _its_own(decoding: Decoding, number: int) -> Decoding:
    """With chance of its own for the sample of that number: the first samples of more are those of fewer."""
    if decoding.temperature == 0:
        return decoding
    return replace(decoding, seed=derive("after a thought", decoding.seed, number))


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


def _answer_alone(reply: Generation) -> Generation:
    """A reply behind a thought. One that begins another all the same has no answer."""
    if begun(reply.text) is None:
        return reply
    thought = tell_apart(reply.text).thought
    return replace(
        reply, text="", tokens=(), finish="length", thought=thought, thought_tokens=reply.generated_tokens, thought_cut=True
    )


def _repeated(found: Samples, n: int) -> Samples:
    """Greedy samples, all the same."""
    if len(found.generations) == n:
        return found
    return Samples(found.generations * n, tuple(np.repeat(rows, n, axis=0) for rows in found.states))

"""The last step of every method that answers by itself: from a prompt to an answer, at once or after a chain of thought."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from gnothi.fields import setting
from gnothi.methods.steps.chain import conclude
from gnothi.methods.steps.multiple_choice import ChoiceScore, choose
from gnothi.methods.steps.parsing import as_choice, read_reply, until_it_repeats
from gnothi.methods.steps.settings import SHORT_STOPS, SignalSettings, needs_of
from gnothi.protocols import LanguageModel
from gnothi.signals.base import Measured
from gnothi.signals.registry import SignalName
from gnothi.types import Answer, Capabilities, Prompt, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringSettings(SignalSettings):
    """What tells how uncertain an answer is, and how one of several choices is taken."""

    signal: SignalName | None = setting(
        None, "Uncertainty of the answer; none: perplexity where the model tells it (choose=likelihood: of the choice)."
    )
    choose: Literal["text", "likelihood"] = setting(
        "text", "Multiple choice: take the choice that the reply names, or the one that is likeliest as the reply."
    )
    choice_score: ChoiceScore = setting(
        "tokens",
        "Likelihood of a choice: log-probability summed, per token or per character; or that of its label (A, B, ...).",
    )

    group: ClassVar[str] = "answers"

    @property
    def answering_needs(self) -> Capabilities:
        """What a model must offer for this."""
        return needs_of(self.signal) | Capabilities(scoring=self.choose == "likelihood")

    @property
    def needs(self) -> Capabilities:
        return self.answering_needs

    async def answer_at_once(self, model: LanguageModel, prompt: Prompt) -> Answer:
        """The short answer that continues the prompt."""
        if self._chooses(prompt) and self.signal is None:
            return await self._likeliest(model, prompt, prompt)  # nothing need be generated
        measured = await self.make_signal(self.signal).measure(model, prompt, self.decoding(SHORT_STOPS))
        return await self.answer_of(model, prompt, measured)

    async def answer_of(self, model: LanguageModel, prompt: Prompt, measured: Measured) -> Answer:
        """The answer that a short reply comes to."""
        if self._chooses(prompt):
            return await self._likeliest(model, prompt, prompt, measured)
        reply = until_it_repeats(measured.greedy.text) if self.extract == "gnothi" else measured.greedy.text
        text = as_choice(self.extraction.short(reply, prompt.question), prompt.choices)
        return Answer(text, "", prompt.passages, measured.score)

    async def conclusion_of(self, model: LanguageModel, prompt: Prompt, measured: Measured) -> Answer:
        """The answer that a chain of thought comes to, asked at once where that only repeats the question; of choices, the
        likeliest where the chain names its answer."""
        if self._chooses(prompt):
            chain = " ".join(f"{prompt.answer_so_far} {measured.greedy.text}".split())
            return await self._likeliest(model, prompt, replace(prompt, answer_so_far=read_reply(chain).reasoning), measured)
        conclusion = await conclude(model, prompt, measured.greedy, self.decoding(SHORT_STOPS), self.extraction)
        answer = Answer(as_choice(conclusion.answer, prompt.choices), conclusion.rationale, prompt.passages, measured.score)
        question = Question("", prompt.question, choices=prompt.choices)
        return await self.reread(model, question, answer)

    def _chooses(self, prompt: Prompt) -> bool:
        return self.choose == "likelihood" and bool(prompt.choices)

    async def _likeliest(
        self, model: LanguageModel, prompt: Prompt, opening: Prompt, measured: Measured | None = None
    ) -> Answer:
        """The likeliest choice after ``opening``: the prompt, or the prompt with a chain of thought."""
        best = await choose(model, opening, self.choice_score)
        rationale = "" if opening is prompt else f"{opening.answer_so_far} {best.text}."
        uncertainty = best.uncertainty if measured is None or self.signal is None else measured.score
        return Answer(best.text, rationale, prompt.passages, uncertainty)

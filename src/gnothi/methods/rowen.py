"""Rowen: retrieve only when needed (Ding et al. 2024, arXiv 2402.10612): is the answer the same however the question is put?

The question is asked in other words, perhaps in another language, and perhaps of another model. Answers that disagree with the
first one speak for looking it up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from gnothi import events
from gnothi.concurrency import both, gather
from gnothi.methods.answers import final_answer, short_answer
from gnothi.methods.formats import require_task, speaks
from gnothi.methods.prompts import EQUIVALENT, require_text
from gnothi.methods.quizzes import parse_quizzes
from gnothi.methods.reader import ReaderSettings
from gnothi.methods.settings import LIST_STOPS, check_ranges, resource, setting
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.base import Sampling
from gnothi.signals.judge import says_yes
from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Answer, Capabilities, Decoding, Demonstration, Prompt, Question, Task

REPHRASE = "rephrase"
_LISTED = 1_000
_WAYS = (
    Demonstration(
        "In which country was the composer of the opera Carmen born?",
        "1. Where, by country, did the composer of Carmen come into the world?\n"
        "2. What is the country of birth of the person who composed the opera Carmen?\n"
        "3. The composer of the opera Carmen was born in which country?",
    ),
    Demonstration(
        "Which metal is liquid at room temperature?",
        "1. What metal is a liquid when it is as warm as a room?\n"
        "2. Which of the metals does not need to be heated to be liquid?\n"
        "3. At room temperature, which metal flows?",
    ),
)


def rephrase(ways: int, language: str | None = None) -> Task:
    """Asks for so many wordings of a question, one per line."""
    where = f" in {language}" if language else ""
    instruction = f"Put the question in {ways} other ways{where} that mean exactly the same, one per line and numbered."
    return Task(REPHRASE, instruction, () if language else _WAYS)


@dataclass(frozen=True, slots=True)
class Rowen(ReaderSettings):
    """Asks in other words, perhaps in another language or of another model, and retrieves when the answers differ."""

    model: LanguageModel
    retriever: Retriever
    verifier: LanguageModel | None = resource("Another model that is asked, too.")
    perturb: Literal["auto", "rephrase", "resample"] = setting(
        "auto", "Ask in other words; or the same again at random, for models with a format of their own (auto: by the model)."
    )
    ways: int = setting(5, "Other ways to ask.", at_least=1)
    language: str | None = setting(None, "Ask in this language as well, such as Chinese (none: only in other words).")
    weight: float = setting(1.0, "α: weight of the verifier's disagreement beside the model's own.", at_least=0.0)
    threshold: float = setting(0.4, "Retrieve when more than this share of the answers disagrees.", at_least=0.0, at_most=1.0)
    equal: Literal["meaning", "form"] = setting(
        "meaning", "Answers agree when the model says that they mean the same, or when they are spelt alike."
    )
    k: int = setting(3, "Passages to retrieve.", at_least=1)

    name: ClassVar[str] = "rowen"

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.perturb == "rephrase":
            require_task(self.name, self.model, rephrase(1), "Use --set perturb=resample (or auto), or another model.")

    @property
    def needs(self) -> Capabilities:
        return self.answering_needs

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        first, questions = await both(self.read(self.model, question), self._wordings(question))
        doubt = await self._doubt(question, first.text, questions)
        fired = says_nothing(first.text) or doubt > self.threshold
        verdict = "retrieve" if fired else "trust"
        events.emit(events.Drafted(first.rationale or first.text, doubt))
        events.emit(events.Decided("retrieve", "disagreement", doubt, self.threshold, verdict, first.text))
        if not fired:
            return first
        found = [scored.passage for scored in await self.retriever.search(question.text, self.k)]
        return await self.read(self.model, question, found)

    # --- the question in other ways ------------------------------------------------------------------------------------

    async def _wordings(self, question: Question) -> list[str]:
        """The question in other words; empty where it is to be asked again as it is."""
        if self.perturb == "resample" or not speaks(self.model, rephrase(1)):
            return []
        tasks = [rephrase(self.ways)] + ([rephrase(self.ways, self.language)] if self.language else [])
        decoding = Decoding(self.ways * self.max_tokens, stop=LIST_STOPS)
        replies = await gather(*(self.model.generate(Prompt(task, question.text), decoding) for task in tasks))
        lists = [parse_quizzes(reply.text, question.text, _LISTED)[: self.ways] for reply in replies]
        return [quiz.text for one in lists for quiz in one]

    async def _doubt(self, question: Question, first: str, questions: Sequence[str]) -> float:
        """The share of answers that disagree with the first one; that of the verifier's joined in by its weight."""
        own = await self._disagreement(question, first, await self._answers(self.model, question, questions))
        if self.verifier is None:
            return own
        answers = await self._answers(self.verifier, question, [question.text, *questions])
        others = await self._disagreement(question, first, answers)
        return (own + self.weight * others) / (1.0 + self.weight)

    async def _answers(self, model: LanguageModel, question: Question, questions: Sequence[str]) -> list[str]:
        """To each wording, greedily; without any, drawn at random from those to the question itself."""
        if questions:
            asked = [Question(question.id, text, choices=question.choices) for text in questions]
            return [answer.text for answer in await gather(*(self.read(model, one) for one in asked))]
        prompt = self.reading(question)
        sampling = Sampling(self.ways, self.temperature, self.top_k, self.top_p)
        samples = await model.sample(prompt, self.ways, sampling.decoding(self.reply_decoding))
        take = final_answer if self.reason else short_answer
        return [take(one.text) for one in samples.generations]

    async def _disagreement(self, question: Question, first: str, answers: Sequence[str]) -> float:
        different = {normalized(one): one for one in answers if normalized(one) != normalized(first)}
        verdicts = await gather(*(self._same(question, first, one) for one in different.values()))
        apart = {form for form, same in zip(different, verdicts, strict=True) if not same}
        return sum(normalized(one) in apart for one in answers) / len(answers)

    async def _same(self, question: Question, one: str, other: str) -> bool:
        if self.equal == "form" or says_nothing(one) or says_nothing(other):
            return False
        return await says_yes(self.model, Prompt(EQUIVALENT, question.text, choices=(one, other)))

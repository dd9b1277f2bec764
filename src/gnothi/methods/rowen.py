"""Rowen: retrieve only when needed (Ding et al. 2024, arXiv 2402.10612): is the answer the same however the question is put?

The question is asked in other words. Its answers are compared with those in another language, with those of another model, or
with both, wording by wording; where too few agree, it is looked up.
"""

from __future__ import annotations

import re
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from gnothi import events
from gnothi.concurrency import both, gather
from gnothi.errors import InvalidSetting
from gnothi.fields import resource, setting
from gnothi.methods.steps.chain import conclude_each
from gnothi.methods.steps.parsing import as_choice
from gnothi.methods.steps.prompts import EQUIVALENT, require_text
from gnothi.methods.steps.reader import DrawingSettings, asks_for_chain
from gnothi.methods.steps.requirements import require_task, speaks
from gnothi.methods.steps.searching import search
from gnothi.methods.steps.settings import LIST_STOPS, SHORT_STOPS
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.base import Sampling
from gnothi.signals.judge import says_yes
from gnothi.signals.replies import normalized, says_nothing
from gnothi.types import Answer, Decoding, Demonstration, Prompt, Question, Task

REPHRASE = "rephrase"
TRANSLATE = "translate"
_LINES = re.compile(r"\n|(?<=\?)[ \t]+(?=\(?\d{1,3}[.)][ \t])")
_NUMBER = re.compile(r"^\s*(?:[-*•–]\s+|[*_(#]*(?:(?:q|question|way)\s*)?\d{1,3}[.):]+[*_]*\s+)", re.IGNORECASE)
_DECORATION = '*_"“”` \t'
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


def rephrase(ways: int) -> Task:
    """Asks for so many wordings of a question, one per line."""
    instruction = f"Put the question in {ways} other ways that mean exactly the same, one per line and numbered."
    return Task(REPHRASE, instruction, _WAYS)


def translate(language: str) -> Task:
    """Asks for a question in another language."""
    return Task(TRANSLATE, f"Translate the question into {language}. Write the translation and nothing else.", ())


def listed(reply: str) -> list[str]:
    """The wordings in a reply: each line, or what follows a question mark and the next number, without number or bullet.

    A line that ends in a colon announces them."""
    texts = (_NUMBER.sub("", line).strip(_DECORATION) for line in _LINES.split(reply))
    return [text for text in texts if any(letter.isalnum() for letter in text) and not text.endswith(":")]


@dataclass(frozen=True, slots=True)
class Rowen(DrawingSettings):
    """Asks in other words, and again in another language or of another model; retrieves when too few answers agree."""

    model: LanguageModel
    retriever: Retriever
    verifier: LanguageModel | None = resource("Another model that is asked, too (Rowen-CM).")
    perturb: Literal["auto", "rephrase", "resample"] = setting(
        "auto", "Ask in other words; or the same again at random, for models with a format of their own (auto: by the model)."
    )
    ways: int = setting(6, "k: other ways to ask.", at_least=1)
    wording_temperature: float = setting(1.0, "Temperature at which wordings are drawn (0: the likeliest).", at_least=0.0)
    language: str | None = setting(
        None, "Ask in this language as well, such as Chinese (Rowen-CL; none: only in the question's own)."
    )
    weight: float = setting(1.0, "α: weight of agreement across models beside that across languages.", at_least=0.0)
    threshold: float = setting(
        0.5,
        "Retrieve when the share of agreeing answers, or the sum of both shares where both are asked for, is below this.",
        at_least=0.0,
    )
    k: int = setting(3, "Passages to retrieve.", at_least=1)

    name: ClassVar[str] = "rowen"
    usual_tokens: ClassVar[int] = 9_000

    def check_settings(self) -> None:
        if self.perturb == "rephrase":
            require_task(self.name, self.model, rephrase(1), "Use <--set perturb=resample> (or auto), or another model.")
        if self.language:
            if self.perturb == "resample":
                raise InvalidSetting(
                    f"setting 'language': got {self.language!r} with perturb=resample, which asks in no other words; expected "
                    "perturb=rephrase, or no language."
                )
            require_task(self.name, self.model, translate(self.language), "Leave the language out, or use another model.")

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        first, wordings = await both(self.read(self.model, question), self._wordings(question))
        shares = await self._agreement(question, first.text, wordings)
        whole = 1.0 + self.weight if len(shares) == 2 else 1.0
        doubt = whole - shares[0] - sum(self.weight * share for share in shares[1:])
        fired = says_nothing(first.text) or doubt > whole - self.threshold
        verdict = "retrieve" if fired else "trust"
        events.emit(events.Drafted(first.rationale or first.text, doubt))
        events.emit(events.Decided("retrieve", "disagreement", doubt, whole - self.threshold, verdict, first.text))
        if not fired:
            return first
        passages = await search(self.retriever, question.text, self.k)
        return await self.read(self.model, question, self.selected(question, passages))

    # --- the question in other ways ------------------------------------------------------------------------------------

    async def _wordings(self, question: Question) -> list[str]:
        """The question in other words; empty where it is to be asked again as it is."""
        if self.perturb == "resample" or not speaks(self.model, rephrase(1)):
            return []
        decoding = Decoding(self.ways * self.max_tokens, self.wording_temperature, stop=LIST_STOPS)
        prompt = Prompt(rephrase(self.ways), question.text)
        if self.wording_temperature:
            (reply,) = (await self.model.sample(prompt, 1, decoding)).generations
        else:
            reply = await self.model.generate(prompt, decoding)
        wordings = listed(reply.text)
        if not wordings:
            events.emit(events.Decided("rephrase", "", None, None, "resample", "the question as it is: no wording was given"))
        return wordings

    async def _agreement(self, question: Question, first: str, wordings: Sequence[str]) -> list[float]:
        """The shares of answers that agree across languages, and across models; with neither, with the first answer."""
        own = self._answers(self.model, question, wordings)
        others: list[Coroutine[Any, Any, list[str]]] = []
        if self.language and wordings:
            others.append(self._abroad(question, wordings, translate(self.language)))
        if self.verifier is not None:
            others.append(self._answers(self.verifier, question, wordings))
        answers, *others_answers = await gather(own, *others)
        compared = others_answers or [[first] * len(answers)]
        return [await self._share(question, list(zip(answers, one, strict=True))) for one in compared]

    async def _abroad(self, question: Question, wordings: Sequence[str], task: Task) -> list[str]:
        decoding = self.decoding(SHORT_STOPS)
        replies = await gather(*(self.model.generate(Prompt(task, text), decoding) for text in wordings))
        return await self._answers(self.model, question, [reply.text.strip() or question.text for reply in replies])

    async def _answers(self, model: LanguageModel, question: Question, wordings: Sequence[str]) -> list[str]:
        """To each wording, greedily; without any, drawn at random from those to the question itself."""
        if wordings:
            questions = [Question(question.id, text, choices=question.choices) for text in wordings]
            return [answer.text for answer in await gather(*(self.read(model, one) for one in questions))]
        prompt = self.reading(question)
        sampling = Sampling(self.ways, self.temperature, self.top_k, self.top_p)
        samples = await model.sample(prompt, self.ways, sampling.decoding(self.reply_decoding(prompt)))
        replies = [one.text for one in samples.generations]
        if asks_for_chain(prompt):
            answers = [
                one.answer for one in await conclude_each(model, prompt, replies, self.decoding(SHORT_STOPS), self.extraction)
            ]
        else:
            answers = [self.extraction.short(reply, question.text) for reply in replies]
        return [as_choice(answer, question.choices) for answer in answers]

    async def _share(self, question: Question, pairs: Sequence[tuple[str, str]]) -> float:
        """Of pairs of answers, how many mean the same. Equal pairs are judged once."""
        forms = [(normalized(one), normalized(other)) for one, other in pairs]
        distinct = dict(zip(forms, pairs, strict=True))
        verdicts = await gather(*(self._same(question, *pair) for pair in distinct.values()))
        same = dict(zip(distinct, verdicts, strict=True))
        return sum(same[form] for form in forms) / len(forms)

    async def _same(self, question: Question, first: str, second: str) -> bool:
        if says_nothing(first) or says_nothing(second):
            return False
        if normalized(first) == normalized(second):
            return True
        return await says_yes(self.model, Prompt(EQUIVALENT, question.text, choices=(first, second)))

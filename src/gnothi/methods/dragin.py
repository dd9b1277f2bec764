"""DRAGIN (Su et al. 2024, arXiv 2403.10081): entropy and attention say when to retrieve, attention what to look for.

A token that the model was unsure of, that later tokens look at and that is no function word, shows a need for information.
The text is cut before it, the words that it looks at most are the query, and the text goes on from what is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from gnothi import events
from gnothi.fields import setting
from gnothi.methods.steps.chain import answer_to
from gnothi.methods.steps.extraction import DRAGIN_ENDS, before_notes
from gnothi.methods.steps.parsing import bare, concludes, first_sentence, sentence, split_sentences, until_it_repeats
from gnothi.methods.steps.prompts import REASON, ask, require_text
from gnothi.methods.steps.queries import is_content
from gnothi.methods.steps.searching import search
from gnothi.methods.steps.settings import CHAIN_STOPS, SENTENCE_STOPS, SHORT_STOPS, MethodSettings
from gnothi.protocols import LanguageModel, Retriever
from gnothi.signals.attention import (
    Word,
    attended_words,
    deepest,
    needs_for_information,
    words_attended_by,
    words_in_need,
)
from gnothi.types import Answer, Attended, Capabilities, Decoding, Passage, Question

_THETA = 1.0
_NAMED = 20
"""The code's tokens for an answer that has to be asked for, which it does without passages."""


@dataclass(frozen=True, slots=True)
class Dragin(MethodSettings):
    """Cuts its text before an unsure token that later ones rely on, and searches for the words this token looks at."""

    model: LanguageModel
    retriever: Retriever
    theta: float | None = setting(
        None,
        "θ: retrieve when a token's entropy (nats) times the greatest attention to it is above this (none: as calibrated on "
        "the model under the name rind, else 1).",
        at_least=0.0,
    )
    attention: Literal["relative", "absolute"] = setting(
        "relative", "Attention by the mean over its sentence (the authors' code), or as it is (the paper's formula)."
    )
    top_n: int = setting(25, "n: words of the query.", at_least=1)
    k: int = setting(3, "Passages per retrieval.", at_least=1)
    max_steps: int = setting(8, "Retrievals.", at_least=1)

    follows: Literal["paper", "code"] = setting(
        "paper",
        "Where paper and authors' code differ. code: drafts see no passages; words are judged, function words too; all unsure "
        "ones of a sentence make the query; all of it is written anew; 'the answer is', nothing new or max_tokens end it.",
    )

    name: ClassVar[str] = "dragin"
    usual_tokens: ClassVar[int] = 6_000

    @property
    def needs(self) -> Capabilities:
        return Capabilities(attentions=True, logprobs=self.follows == "code")

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        if self.follows == "code":
            text, by_id, doubt = await self._as_code(question)
            chain, short = ask(REASON, question, so_far=before_notes(text)), Decoding(_NAMED, stop=DRAGIN_ENDS)
        else:
            text, passages, by_id, doubt = await self._as_paper(question)
            chain, short = ask(REASON, question, passages, text), self.decoding(SHORT_STOPS)
        answer = await answer_to(self.model, chain, short, tuple(by_id.values()), doubt, self.extraction)
        return await self.reread(self.model, question, answer)

    async def _as_paper(self, question: Question) -> tuple[str, tuple[Passage, ...], dict[str, Passage], float]:
        """The text, the passages that it was last written from, all that were read by id, and the greatest need of a draft."""
        text, doubt = "", 0.0
        passages: tuple[Passage, ...] = ()
        by_id: dict[str, Passage] = {}
        for _ in range(self.max_steps):
            prompt = ask(REASON, question, passages, text)
            drafted = sentence((await self.model.generate(prompt, self.decoding(CHAIN_STOPS))).text)
            draft = until_it_repeats(drafted)
            if not draft:
                break
            attended = await self.model.attend(prompt, draft)
            needs = needs_for_information(attended, is_content, self.attention == "relative")
            doubt = max(doubt, deepest(needs))
            place = next((place for place, need in enumerate(needs) if need > self._theta), None)
            self._decide(draft, attended, needs, place)
            hits = () if place is None else await self._search(question, text, attended, place)
            if place is None or not hits:
                text = f"{text} {draft}".strip()
                break
            passages = hits
            by_id |= {passage.id: passage for passage in hits}
            prefix = f"{text} {_before(attended, place)}".strip()
            # As published, what follows a retrieval stands unchecked up to the end of its sentence.
            continued = await self.model.generate(ask(REASON, question, passages, prefix), self.decoding(SENTENCE_STOPS))
            longer = f"{prefix} {sentence(continued.text)}".strip()
            events.emit(events.Written(longer.removeprefix(text).strip()))
            if longer == text or until_it_repeats(longer) != longer:
                text = until_it_repeats(longer)
                break
            text = longer
            if concludes(continued.text) or concludes(_last(text)):
                break
        return text, passages, by_id, doubt

    async def _as_code(self, question: Question) -> tuple[str, dict[str, Passage], float]:
        text, length, doubt = "", 0, 0.0
        by_id: dict[str, Passage] = {}
        for _ in range(self.max_steps):
            prompt = ask(REASON, question, (), text)
            reply = await self.model.generate(prompt, self.decoding(CHAIN_STOPS))
            draft = reply.text.strip()
            if not draft:
                break
            sentences = [one for line in draft.splitlines() if line.strip() for one in split_sentences(line)]
            attended = await self.model.attend(prompt, draft)
            words_of = words_in_need(attended, is_content, [len(one.split()) for one in sentences])
            doubt = max(doubt, deepest([word.need for one in words_of for word in one]))
            unsure = [[word for word in one if word.need > self._theta] for one in words_of]
            at = next((place for place, words in enumerate(unsure) if words), None)
            self._emit(draft, words_of, None if at is None else unsure[at][0])
            hits = (
                () if at is None else await self._search_by(question, text, attended, sentences[: at + 1], words_of, unsure[at])
            )
            if at is None or not hits:
                longer = f"{text} {draft}".strip()
                length += len(attended.entropies)
            else:
                by_id |= {passage.id: passage for passage in hits}
                prefix = " ".join([text, *sentences[:at]]).strip()
                continued = await self.model.generate(ask(REASON, question, hits, prefix), self.decoding(CHAIN_STOPS))
                longer = f"{prefix} {split_sentences(continued.text)[0]}".strip()
                length += sum(len(word.places) for one in words_of[:at] for word in one)
                length += len(first_sentence(continued).tokens)
                events.emit(events.Written(longer.removeprefix(text).strip()))
            # Of the code's count of tokens one begins the text, so that it ends with max_tokens, not with one more.
            ends = len(longer) <= len(text) or "the answer is" in longer or length >= self.max_tokens
            text = longer
            if ends:
                break
        return text, by_id, doubt

    async def _search_by(
        self,
        question: Question,
        text: str,
        attended: Attended,
        sentences: Sequence[str],
        words_of: Sequence[Sequence[Word]],
        unsure: Sequence[Word],
    ) -> tuple[Passage, ...]:
        """With the words of the question and of the text, up to the end of the last of ``sentences``, that the unsure words of
        this sentence were predicted from."""
        known = set(" ".join([question.text, text, *sentences]).split())
        end = words_of[len(sentences) - 1][-1].places[-1] + 1

        def counts(word: str, first: bool) -> bool:
            return word in known and is_content(word, first)

        sayings = [word for word in unsure if word.counts]
        words = words_attended_by(attended, sayings, end, question.text, self.top_n, counts)
        return await search(self.retriever, " ".join(words) or question.text, self.k)

    def _emit(self, draft: str, words_of: Sequence[Sequence[Word]], unsure: Word | None) -> None:
        most = max((word for one in words_of for word in one), key=lambda word: word.need, default=None)
        events.emit(events.Drafted(draft, most.need if most else 0.0))
        word, verdict = (unsure or most), "retrieve" if unsure else "trust"
        score, subject = (most.need if most else 0.0), word.text if word else ""
        events.emit(events.Decided("retrieve", "rind", score, self._theta, verdict, subject))

    @property
    def _theta(self) -> float:
        return self.model.profile.thresholds.get("rind", _THETA) if self.theta is None else self.theta

    async def _search(self, question: Question, text: str, attended: Attended, place: int) -> tuple[Passage, ...]:
        """With the words of the question and of the text so far that the token looks at; the question where there are none."""
        known = set(f"{question.text} {text} {_before(attended, place)}".split())

        def counts(word: str, first: bool) -> bool:  # what else a prompt holds, such as its labels, is nothing to look for
            return word in known and is_content(word, first)

        words = attended_words(attended, place, question.text, self.top_n, counts)
        query = " ".join(map(bare, words)) or question.text
        return await search(self.retriever, query, self.k)

    def _decide(self, draft: str, attended: Attended, needs: list[float], place: int | None) -> None:
        most = deepest(needs)
        events.emit(events.Drafted(draft, most))
        at = needs.index(most) if place is None and needs else place
        subject = attended.tokens[attended.prompt_tokens + at].strip() if at is not None else ""
        verdict = "trust" if place is None else "retrieve"
        events.emit(events.Decided("retrieve", "rind", most, self._theta, verdict, subject))


def _before(attended: Attended, place: int) -> str:
    """The continuation up to a token, or to the word that the token is a part of."""
    start = attended.prompt_tokens
    before, token = "".join(attended.tokens[start : start + place]), attended.tokens[start + place]
    if before and not before[-1].isspace() and not token[:1].isspace():
        before = before[: len(before.rstrip()) - len(before.split()[-1])] if before.split() else ""
    return " ".join(before.split())


def _last(text: str) -> str:
    """The last sentence, roughly: what follows the last full stop but one."""
    return text.rstrip(". ").rpartition(". ")[2]

"""ReAct (Yao et al. 2023, arXiv 2210.03629): thoughts and actions in turns, each followed by what came of it.

The format is one that a model has to follow from an instruction and examples. One with a format of its own was never taught
it; with ``form=sentences`` such a model keeps the loop, by what it can do: its thought is the next sentence of a chain, its
action a search for that sentence, and it finishes when the chain concludes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gnothi import events
from gnothi.fields import setting
from gnothi.methods.steps.chain import answer_to
from gnothi.methods.steps.parsing import as_choice, concludes, sentence
from gnothi.methods.steps.prompts import REASON, ask, require_text
from gnothi.methods.steps.queries import keywords
from gnothi.methods.steps.react_format import (
    ACTION_STOPS,
    FINISH_STOPS,
    NO_ACTION,
    REACT,
    STOPS,
    Action,
    Browser,
    Turn,
    parse_turn,
    turn_text,
)
from gnothi.methods.steps.requirements import require_task, speaks
from gnothi.methods.steps.searching import search
from gnothi.methods.steps.settings import SENTENCE_STOPS, SHORT_STOPS, MethodSettings
from gnothi.protocols import LanguageModel, Retriever
from gnothi.types import Answer, Passage, Question


@dataclass(frozen=True, slots=True)
class ReAct(MethodSettings):
    """Thinks, searches, looks up and finishes in turns, reading what came of each action."""

    model: LanguageModel
    retriever: Retriever
    form: Literal["auto", "actions", "sentences"] = setting(
        "auto",
        "Actions as in the paper; or sentences of a chain, for models with a format of their own (auto: by the model).",
    )
    max_steps: int = setting(7, "Turns before the answer is asked for.", at_least=1)
    pages: int = setting(
        5, "Results of a search, of which the best is opened and the titles of the others are shown.", at_least=1
    )
    shown: int = setting(5, "Sentences of an opened page that are shown.", at_least=1)
    language: str = setting("en", "Language of the passages, for abbreviations and numbers at the ends of sentences.")

    name: ClassVar[str] = "react"
    usual_tokens: ClassVar[int] = 9_000

    def check_settings(self) -> None:
        if self.form == "actions":
            require_task(self.name, self.model, REACT, "Use <--set form=sentences> (or auto), or another model.")

    async def __call__(self, question: Question) -> Answer:
        require_text(question)
        if self.form == "actions" or (self.form == "auto" and speaks(self.model, REACT)):
            return await self._by_actions(question)
        return await self._by_sentences(question)

    # --- as in the paper -----------------------------------------------------------------------------------------------

    async def _by_actions(self, question: Question) -> Answer:
        browser = Browser(self.retriever, question.text, self.pages, self.shown, self.language)
        turns: list[str] = []
        last: tuple[Action | None, str] | None = None
        for number in range(1, self.max_steps + 1):
            turn = await self._turn(question, turns, number)
            if turn.action is None and not turn.thought:
                break
            _acted(turn)
            if turn.action is not None and turn.action.kind == "finish":
                turns.append(turn_text(number, turn))
                return await self._answer(question, turn.action.argument, turns, browser)
            observation = await self._observe(browser, turn.action)
            if last == (turn.action, observation):
                break  # the same again, and the same came of it: turns would only go round
            last = turn.action, observation
            turns.append(turn_text(number, turn, observation))
        # Out of turns: the last action is given, and only its argument left open.
        number = len(turns) + 1
        opening = f"Thought {number}: It is time to answer.\nAction {number}: finish["
        reply = await self._continued(question, [*turns, opening], FINISH_STOPS)
        return await self._answer(question, reply, [*turns, f"{opening}{reply.strip()}]"], browser)

    async def _turn(self, question: Question, turns: list[str], number: int) -> Turn:
        """The next thought and action; a thought without one is shown again, and the action alone asked for (the code)."""
        opening = [*turns, f"Thought {number}:"]
        turn = parse_turn(await self._continued(question, opening, STOPS))
        if turn.action is None and turn.thought:
            opening = [*turns, turn_text(number, turn), f"Action {number}:"]
            return Turn(turn.thought, parse_turn(opening[-1] + await self._continued(question, opening, ACTION_STOPS)).action)
        return turn

    async def _continued(self, question: Question, turns: list[str], stops: tuple[str, ...]) -> str:
        prompt = ask(REACT, question, so_far="\n".join(turns))
        return (await self.model.generate(prompt, self.decoding(stops))).text

    @staticmethod
    async def _observe(browser: Browser, action: Action | None) -> str:
        if action is None:
            return NO_ACTION
        return await browser.search(action.argument) if action.kind == "search" else browser.lookup(action.argument)

    async def _answer(self, question: Question, text: str, turns: list[str], browser: Browser) -> Answer:
        finished = as_choice(self.extraction.short(text, question.text), question.choices)
        return await self.reread(self.model, question, Answer(finished, "\n".join(turns), browser.passages))

    # --- by sentences --------------------------------------------------------------------------------------------------

    async def _by_sentences(self, question: Question) -> Answer:
        chain: list[str] = []
        passages: tuple[Passage, ...] = ()
        for _ in range(self.max_steps):
            thought = await self._think(question, passages, chain)
            hits = await self._look_at_one(thought, passages) if thought and not concludes(thought) else ()
            if hits:
                passages += hits
                thought = await self._think(question, passages, chain)
            if not thought or thought in chain:
                break
            chain.append(thought)
            if concludes(thought):
                break
        prompt = ask(REASON, question, passages, " ".join(chain))
        return await answer_to(self.model, prompt, self.decoding(SHORT_STOPS), passages, None, self.extraction)

    async def _think(self, question: Question, passages: tuple[Passage, ...], chain: list[str]) -> str:
        prompt = ask(REASON, question, passages, " ".join(chain))
        return sentence((await self.model.generate(prompt, self.decoding(SENTENCE_STOPS))).text)

    async def _look_at_one(self, thought: str, passages: tuple[Passage, ...]) -> tuple[Passage, ...]:
        """The best passage for the thought that was not seen before."""
        action = Action("search", keywords(thought))
        _acted(Turn(thought, action))
        return await search(self.retriever, action.argument, 1, {passage.id for passage in passages})


def _acted(turn: Turn) -> None:
    action = turn.action
    events.emit(events.Drafted(turn.thought, None))
    events.emit(events.Decided("act", "", None, None, action.kind if action else "none", action.argument if action else ""))

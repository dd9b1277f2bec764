"""What ReAct needs: the form of its turns (Thought, Action, Observation), and an index as pages to browse."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gnothi.filtering.sentences import sentences_of
from gnothi.protocols import Retriever
from gnothi.signals.replies import normalized
from gnothi.types import Demonstration, Passage, Task

Kind = Literal["search", "lookup", "finish"]

REACT = Task(
    name="react",
    instruction=(
        "Answer the question by turns of Thought, Action and Observation. A Thought says in a sentence what is known and what "
        "to do next. An Action is one of: search[name], which opens the page about it; lookup[words], which finds the next "
        "sentence with these words on the open page; finish[answer], which ends the search with an answer that is as short as "
        "possible. The Observation says what came of the action."
    ),
    # The one whose answer is a name from the question comes first: a small model copies the form of the last ones.
    demonstrations=(
        Demonstration(
            "Who was born first, Tomas Reill or Agathe Sorn?",
            "Thought 1: I need two years of birth, first that of Tomas Reill.\n"
            "Action 1: search[Tomas Reill]\n"
            "Observation 1: Tomas Reill: The clockmaker Tomas Reill was born on 3 March 1788 in Vennick.\n"
            "Thought 2: Tomas Reill was born in 1788. Next is Agathe Sorn.\n"
            "Action 2: search[Agathe Sorn]\n"
            "Observation 2: Agathe Sorn: Agathe Sorn, born in 1779, built the tower clock of Ostrava Bridge.\n"
            "Thought 3: 1779 is earlier than 1788, so Agathe Sorn was born first.\n"
            "Action 3: finish[Agathe Sorn]",
        ),
        Demonstration(
            "On which island did the engineer who planned the Dunmere Salt Tram grow up?",
            "Thought 1: I have to find out who planned the Dunmere Salt Tram.\n"
            "Action 1: search[Dunmere Salt Tram]\n"
            "Observation 1: Dunmere Salt Tram: The Dunmere Salt Tram opened in 1902. It ran for twelve years.\n"
            "Thought 2: The engineer is not named here. The page may name him further down.\n"
            "Action 2: lookup[engineer]\n"
            "Observation 2: (1 of 1) It was planned by the engineer Odile Varr.\n"
            "Thought 3: Odile Varr planned it. Now I need the island where she grew up.\n"
            "Action 3: search[Odile Varr]\n"
            "Observation 3: Odile Varr: Odile Varr (1866-1931) was an engineer. She grew up on the island of Heskar.\n"
            "Thought 4: She grew up on Heskar, so that is the answer.\n"
            "Action 4: finish[Heskar]",
        ),
        Demonstration(
            "What was Ansel Brock's trade?",
            "Thought 1: I have to find out what Ansel Brock worked as.\n"
            "Action 1: search[Ansel Brock]\n"
            "Observation 1: Ansel Brock: Ansel Brock (1840-1911) was a bookbinder of Vennick. He had two sons.\n"
            "Thought 2: Ansel Brock was a bookbinder, so that is the answer.\n"
            "Action 2: finish[bookbinder]",
        ),
    ),
    answer_label="Turns:",
)

STOPS = ("\nObservation", "\nQuestion:")
ACTION_STOPS = ("\n",)
FINISH_STOPS = ("]", "\n")
# Shows no brackets: a small model copies what stands in them.
NO_ACTION = "That was no action: search, look something up or finish."

_LABEL = re.compile(r"\baction\s*\d*\s*[:.]", re.IGNORECASE)
_CALL = re.compile(r"\b(?P<kind>search|look[ -]?up|finish)\s*(?P<open>[\[(])", re.IGNORECASE)
_THOUGHT = re.compile(r"(?:^\s*thought\s*\d*|\bthought\s*\d+)\s*:", re.IGNORECASE)
_QUOTES = "\"'“”‘’"


@dataclass(frozen=True, slots=True)
class Action:
    kind: Kind
    argument: str

    def __str__(self) -> str:
        return f"{self.kind}[{self.argument}]"


@dataclass(frozen=True, slots=True)
class Turn:
    """A thought, and the action that it led to; None where there is none to be found."""

    thought: str
    action: Action | None


def parse_turn(reply: str) -> Turn:
    """The first thought and action of a reply. A thought ends where the next one is announced.

    The action is what follows the first "Action:", however numbered; without that label, the first call in square brackets.
    Case, quotation marks around the argument, round brackets, brackets within the argument and a missing closing bracket do
    not matter; a call without an argument is none.
    """
    label = _LABEL.search(reply)
    start = label.end() if label else 0
    call = next((one for one in _CALL.finditer(reply, start) if label or one["open"] == "["), None)
    end = label.start() if label else call.start() if call else len(reply)
    thought = next(filter(None, (" ".join(piece.split()) for piece in _THOUGHT.split(reply[:end]))), "")
    argument = _argument(reply[call.end() :], call["open"]) if call else ""
    if not call or not argument:
        return Turn(thought, None)
    kinds: dict[str, Kind] = {"s": "search", "l": "lookup", "f": "finish"}
    return Turn(thought, Action(kinds[call["kind"][0].lower()], argument))


def _argument(text: str, opening: str) -> str:
    """Up to the bracket that closes the one before ``text``; to the end of the line where none does."""
    closing, depth = {"[": "]", "(": ")"}[opening], 1
    line = text.partition("\n")[0]
    for place, letter in enumerate(line):
        depth += (letter == opening) - (letter == closing)
        if depth == 0:
            line = line[:place]
            break
    return " ".join(line.strip().strip(_QUOTES).split())


def turn_text(number: int, turn: Turn, observation: str = "") -> str:
    """A turn as the model reads it afterwards."""
    lines = [f"Thought {number}: {turn.thought}".rstrip()]
    if turn.action is not None:
        lines.append(f"Action {number}: {turn.action}")
    if observation:
        lines.append(f"Observation {number}: {observation}")
    return "\n".join(lines)


class Browser:
    """A reader's place in a library, come with a ``question``. ``passages`` are those that were shown, each once, in order.

    A page is the passages of one title among the ``pages`` best ones; a passage without a title is a page of its own.
    """

    def __init__(self, retriever: Retriever, question: str, pages: int, sentences: int, language: str) -> None:
        self._retriever = retriever
        self._question = question
        self._pages = pages
        self._sentences = sentences
        self._language = language
        self._page: list[str] = []
        self._looked_up: tuple[str, int] = ("", 0)
        self._opened: dict[str, Passage] = {}

    @property
    def passages(self) -> tuple[Passage, ...]:
        return tuple(self._opened.values())

    async def search(self, name: str) -> str:
        """Opens the page of that name, else the best one found, and shows its beginning and what else there is. Where nothing
        is found, it names the pages that are there for the question (the code: similar names)."""
        passages = await self._retrieve(name)
        if not passages:
            titles = ", ".join(dict.fromkeys(one.title for one in await self._retrieve(self._question) if one.title))
            return f"Nothing was found about {name}. " + (f"There is: {titles}." if titles else "Try other words.")
        named = [passage for passage in passages if passage.title and normalized(passage.title) == normalized(name)]
        best = (named or passages)[0]
        page = [passage for passage in passages if passage.title == best.title] if best.title else [best]
        self._open(page)
        beginning = " ".join(self._page[: self._sentences])
        text = f"{best.title}: {beginning}" if best.title else beginning
        others = [] if named else list(dict.fromkeys(one.title for one in passages if one.title and one.title != best.title))
        return f"{text} See also: {', '.join(others)}." if others else text

    async def _retrieve(self, query: str) -> list[Passage]:
        return [one.passage for one in await self._retriever.search(query, self._pages)]

    def lookup(self, words: str) -> str:
        """The next sentence of the open page that holds the words; each time the same is asked for, the one after."""
        if not self._page:
            return "No page is open. Search first."
        hits = [sentence for sentence in self._page if words.casefold() in sentence.casefold()]
        last, count = self._looked_up
        count = count + 1 if last == words.casefold() else 1
        self._looked_up = (words.casefold(), count)
        if not hits:
            return f"The page does not hold {words}."
        return f"({count} of {len(hits)}) {hits[count - 1]}" if count <= len(hits) else "No more results."

    def _open(self, page: Sequence[Passage]) -> None:
        self._opened |= {passage.id: passage for passage in page if passage.id not in self._opened}
        self._page = [sentence.text for sentence in sentences_of(page, self._language)]
        self._looked_up = ("", 0)

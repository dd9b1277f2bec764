"""What makes SearChain: the whole chain first, then each node completed, corrected or kept, and what follows anew."""

from __future__ import annotations

import math

from gnothi import events, methods
from gnothi.errors import MissingCapability
from gnothi.testing.model import Reply, Scripted
from gnothi.testing.retriever import ScriptedRetriever
from gnothi.types import Answer, Capabilities, Passage, Prompt, Question
from tests.messages import refused

QUESTION = Question("q", "Where was the painter of The Tide born?")
PAINTER, BORN = "Who painted The Tide?", "Where was {} born?"
TIDE = Passage("tide", "The Tide was painted by Mira.")
MIRA = Passage("mira", "Mira was born in Kestrel.")
ODILE = Passage("odile", "Odile was born in Vesk.")


class World:
    """Remembers ``painter`` (None: does not know) and that everybody was born in Ulm; reads the truth, as surely as told."""

    def __init__(self, painter: str | None, sure: float = 0.9, readable: bool = True) -> None:
        self.painter, self.sure, self.readable = painter, sure, readable
        self.model = Scripted(self._reply)
        self.retriever = ScriptedRetriever({PAINTER: [TIDE], BORN.format("Mira"): [MIRA], BORN.format("Odile"): [ODILE]})

    def _reply(self, prompt: Prompt) -> Reply:
        task, asked = prompt.task.name, prompt.question
        if task == "decompose":
            return Reply(f"1. {PAINTER}\n2. {BORN.format('#1')}")
        if task == "know":
            return Reply("No" if asked == PAINTER and self.painter is None else "Yes")
        if task == "equivalent":
            return Reply("No")
        if task == "reason":
            return Reply(f"So the answer is {prompt.passages[-1].text.split()[-1]}" if prompt.passages else "")
        if prompt.passages and self.readable:
            read = prompt.passages[0].text.rstrip(".").split()[-1]
            return Reply(read, (math.log(self.sure),))
        return Reply("" if prompt.passages else self.painter or "" if asked == PAINTER else "Ulm")

    async def ask(self, **settings: object) -> tuple[Answer, dict[str, str], list[tuple[str, str]]]:
        resources = {"model": self.model, "retriever": self.retriever}
        with events.record() as recorded:
            answer = await methods.create("searchain", resources, settings)(QUESTION)
        verdicts = {event.subject: event.verdict for event in recorded if isinstance(event, events.Decided)}
        nodes = [(event.question, event.answer) for event in recorded if isinstance(event, events.QuizAnswered)]
        return answer, verdicts, nodes


async def test_the_chain_is_answered_whole_before_anything_is_searched() -> None:
    world = World("Mira")
    asked: list[int] = []
    search = world.retriever.search
    world.retriever.search = lambda query, k: (asked.append(len(world.model.prompts)), search(query, k))[1]  # type: ignore[method-assign,func-returns-value]
    _, _, nodes = await world.ask()
    assert nodes[:2] == [(PAINTER, "Mira"), (BORN.format("Mira"), "Ulm")]
    assert asked[0] == 5  # the plan; for two nodes whether known, and the answer


async def test_a_correction_changes_what_follows() -> None:
    answer, verdicts, nodes = await World("Odile").ask()
    assert verdicts == {PAINTER: "correct", BORN.format("Mira"): "correct"}
    assert nodes == [
        (PAINTER, "Odile"),
        (BORN.format("Odile"), "Ulm"),
        (PAINTER, "Mira"),
        (BORN.format("Mira"), "Kestrel"),
    ]
    assert answer.text == "Kestrel"
    assert answer.evidence == (TIDE, MIRA)


async def test_an_unsure_reader_corrects_nothing() -> None:
    answer, verdicts, _ = await World("Odile", sure=0.5).ask()
    assert set(verdicts.values()) == {"keep"}
    assert (answer.text, answer.evidence) == ("Ulm", ())
    assert (await World("Odile", sure=0.5).ask(theta=0.4))[0].text == "Kestrel"


async def test_an_unsolved_node_is_completed_however_unsure_the_reader() -> None:
    answer, verdicts, nodes = await World(None, sure=0.5).ask()
    assert verdicts[PAINTER] == "complete"
    assert nodes[:2] == [(PAINTER, "unknown"), (BORN.format("unknown"), "unknown")]
    assert nodes[2] == (PAINTER, "Mira")
    assert answer.evidence[0] == TIDE


async def test_what_is_not_solved_stays_unknown() -> None:
    _, verdicts, nodes = await World(None, readable=False).ask()
    assert verdicts == {}
    assert nodes[-1][1] == "unknown"


async def test_agreement_keeps_the_node_without_a_judge() -> None:
    world = World("Mira")
    _, verdicts, _ = await world.ask()
    assert verdicts[PAINTER] == "keep"
    assert PAINTER not in [prompt.question for prompt in world.model.prompts if prompt.task.name == "equivalent"]


def test_the_reader_must_tell_how_sure_it_is() -> None:
    blind = Scripted({}, name="blind", capabilities=Capabilities())
    resources = {"model": Scripted({}), "retriever": ScriptedRetriever([]), "reader": blind}
    with refused(MissingCapability):
        methods.create("searchain", resources, {})

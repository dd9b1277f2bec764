from __future__ import annotations

from typing import ClassVar

from gnothi_example.method import best_of

from gnothi import methods
from gnothi.testing import Reply, Scripted, ScriptedRetriever
from gnothi.testing.conformance import MethodConformance
from gnothi.types import Passage, Prompt, Question

FOUND = Passage("p", "Kestrel has a mill. Mira Tolven was born in Kestrel. It is old.", "Kestrel")


class TestBestSentence(MethodConformance):
    """One sentence holds no answer to a question of two hops."""

    name = "best_sentence"
    knows = False


class TestBestSentenceByConsistency(TestBestSentence):
    settings: ClassVar = {"signal": "consistency"}


def reader(prompt: Prompt) -> Reply:
    if prompt.passages:
        return Reply("So the answer is Kestrel.")
    return Reply("Perhaps Ulm, maybe. So the answer is Ulm.")


async def test_a_reply_that_hedges_is_looked_up() -> None:
    resources = {"model": Scripted(reader), "retriever": ScriptedRetriever([FOUND])}
    question = Question("q", "Where was Mira Tolven born?")
    answer = await methods.create("best_sentence", resources, {})(question)
    assert (answer.text, [one.text for one in answer.evidence]) == ("Kestrel", ["Mira Tolven was born in Kestrel."])
    trusting = await methods.create("best_sentence", resources, {"threshold": 0.5})(question)
    assert (trusting.text, trusting.evidence) == ("Ulm", ())


def test_the_first_of_equal_sentences() -> None:
    assert best_of("Where?", []) == ()
    assert best_of("What is old?", [FOUND])[0].text == "It is old."
    assert best_of("zzz", [FOUND])[0].text == "Kestrel has a mill."

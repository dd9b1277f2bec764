import asyncio

import pytest

from gnothi import lab
from gnothi.lab.calibration import thresholds
from gnothi.testing.model import Scripted
from gnothi.types import Capabilities, Prompt


def test_thresholds_part_what_the_model_knows_from_what_it_does_not() -> None:
    world = lab.world()
    asked = {question.text: question for question in lab.training_questions(world, "one_hop", 40)}

    def script(prompt: Prompt) -> list[str]:
        question = asked[prompt.question]
        if question.metadata["familiarity"] == "often":
            return [f"It is {question.answers[0]}"]
        return [f"It is {letter}" for letter in "abcdef"]

    model = Scripted(script, capabilities=Capabilities())
    chosen = asyncio.run(thresholds(model, world, 40))
    assert "gram" not in chosen  # the model shows no states
    assert 0 < chosen["consistency"] < 1


def test_nothing_is_chosen_where_all_is_wrong() -> None:
    assert asyncio.run(thresholds(Scripted(lambda _: "no idea", capabilities=Capabilities()), lab.world(), 10)) == {}


@pytest.mark.parametrize("n", [0])
def test_no_questions_no_thresholds(n: int) -> None:
    assert asyncio.run(thresholds(Scripted(lambda _: "x", capabilities=Capabilities()), lab.world(), n)) == {}

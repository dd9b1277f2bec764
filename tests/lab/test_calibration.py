import asyncio

import pytest

from gnothi import lab
from gnothi.lab.calibration import thresholds
from gnothi.models.fake import Scripted
from gnothi.types import Capabilities, Prompt
from tests.signals.probes import probe_saying


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


def test_signals_that_were_learnt_get_a_threshold_with_a_probe() -> None:
    world = lab.world()
    asked = {question.text: question for question in lab.training_questions(world, "one_hop", 40)}

    def script(prompt: Prompt) -> str:
        question = asked[prompt.question]
        return f"It is {question.answers[0] if question.metadata['familiarity'] == 'often' else 'nobody'}"

    model = Scripted(script, capabilities=Capabilities(), hidden_size=32)
    chosen = asyncio.run(thresholds(model, world, 40, probe_saying(0.7, 0.3)))
    assert (chosen["probe"], chosen["question"]) == (0.7, 0.3)
    assert "probe" not in asyncio.run(thresholds(model, world, 40))

"""What is read of a prompt, held against the library's own hidden states; and the signals made of it."""

from __future__ import annotations

import pytest

from gnothi import events
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.methods.steps.prompts import ANSWER, REASON
from gnothi.models.wrappers import Traced
from gnothi.signals import registry
from gnothi.signals.base import PromptSignal
from gnothi.signals.probe import Probe, as_task
from gnothi.testing.model import Scripted
from gnothi.types import Capabilities, Decoding, Passage, Prompt
from tests.messages import refused
from tests.signals.probes import HIDDEN_SIZE, probe_saying

PROMPT = Prompt(REASON, "Where was Mira Tolven born?", (Passage("p", "Text"),), ("a", "b"), "She was")


@pytest.mark.parametrize(("name", "chance"), [("probe", 0.8), ("question", 0.3)])
async def test_the_chance_is_the_uncertainty(name: str, chance: float) -> None:
    model = Traced(Scripted(lambda _: "Kestrel by Dunmere"))
    signal = registry.create(name, probe=probe_saying(0.8, 0.3))
    assert isinstance(signal, PromptSignal)
    with events.record() as recorded:
        measured = await signal.measure(model, PROMPT, Decoding())
    assert measured.greedy.text == "Kestrel by Dunmere"
    assert measured.uncertainty == pytest.approx(chance)
    assert await signal.from_prompt(model, PROMPT) == pytest.approx(chance)
    calls = [(one.operation, one.generated_tokens) for one in recorded if isinstance(one, events.ModelCall)]
    assert sorted(calls) == [("generate", 4), ("states", 0)][: 2 if name == "probe" else 1]


async def test_a_task_of_its_own_leaves_out_what_was_said() -> None:
    model = Scripted(lambda _: "Kestrel")
    await registry.create("probe", probe=probe_saying(0.8, task=ANSWER)).measure(model, PROMPT, Decoding())
    assert Prompt(ANSWER, PROMPT.question, PROMPT.passages, PROMPT.choices) in model.prompts
    assert as_task(PROMPT, None) is PROMPT


@pytest.mark.parametrize("name", ["probe", "question"])
def test_they_need_a_probe(name: str) -> None:
    assert registry.reads_probe(name)
    assert isinstance(probe_saying(0.5), Probe)
    with refused(InvalidSetting):
        registry.create(name)


async def test_states_of_another_size_are_of_another_model() -> None:
    model = Scripted(lambda _: "x", hidden_size=HIDDEN_SIZE + 1)
    with refused(InvalidInput):
        await registry.create("probe", probe=probe_saying(0.5)).measure(model, PROMPT, Decoding())


async def test_wording_asks_the_model_for_no_more_than_text() -> None:
    model = Scripted(lambda _: "x", capabilities=Capabilities())
    measured = await registry.create("question", probe=probe_saying(0.5, 0.9)).measure(model, PROMPT, Decoding())
    assert measured.uncertainty == pytest.approx(0.9)
    assert len(model.prompts) == 1

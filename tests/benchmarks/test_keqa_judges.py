"""KEQA's table 2 on scripted models: pairs, labels, judges."""

from __future__ import annotations

from benchmarks.keqa import judges
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Capabilities, Prompt, Question


async def test_keqas_judges_are_held_against_labels() -> None:
    """The model says which answers are the same by their first letters; a judge by their last, another not at all."""

    def labeller(at: int) -> Scripted:
        def reply(prompt: Prompt) -> list[Reply]:
            if prompt.choices:
                return [Reply("Yes" if prompt.choices[0][at] == prompt.choices[1][at] else "No")]
            return [Reply(text, doubt=1.0) for text in ("Anna", "Annabel", "Bella", "unknown", "anna")]

        return Scripted(reply, capabilities=Capabilities())

    named = {"as the model": labeller(0), "other": labeller(-1)}
    alike = lambda ones, others: [float(one[:2] == other[:2]) for one, other in zip(ones, others, strict=True)]  # noqa: E731
    found = await judges(labeller(0), named, [Question("q", "Who was it?")], alike)
    assert found["BERTScore"] == {"right, at its best threshold": 1.0, "AUROC": 1.0}
    assert (found["pairs"], found["the same"], found["all alike"]) == (2, 1, 0.5)
    assert found["as the model"]["right"] == 1.0
    assert found["other"]["right"] == 0.0

"""What do all signals side by side cost beside the one that needs hidden states? Processor time on the laboratory's questions.

reply       the chain of thought alone (``cot``)
gram        the reply and SeaKR's signal (``cot``, ``signal=gram``)
one by one  every signal by its own ``measure``, one after the other
panel       every signal by ``panel``
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from benchmarks._shared import arguments, as_json, interleave, machine, publish, ratios, say, table
from gnothi import lab, methods
from gnothi.concurrency import gather
from gnothi.methods.panel import EverySignal
from gnothi.models import load_model, settings_class
from gnothi.protocols import LanguageModel
from gnothi.seeding import question_scope
from gnothi.types import Question

Way = Callable[[Question], Coroutine[Any, Any, object]]
BASE = "gram"


def ways(model: LanguageModel) -> Mapping[str, Way]:
    """How to answer one question, by name."""
    panel = methods.create("panel", {"model": model}, {})
    assert isinstance(panel, EverySignal)

    async def one_by_one(question: Question) -> None:
        prompt = panel.reading(question)
        for signal in panel.signals.values():
            await signal.measure(model, prompt, panel.reply_decoding(prompt))

    return {
        "reply": methods.create("cot", {"model": model}, {}),
        BASE: methods.create("cot", {"model": model}, {"signal": "gram"}),
        "one by one": one_by_one,
        "panel": panel,
    }


async def processor_time(way: Way, questions: Sequence[Question], seed: int) -> float:
    """Seconds of this process's threads, all questions at once."""

    async def one(question: Question) -> None:
        with question_scope(seed, question.id):
            await way(question)

    start = time.process_time()
    await gather(*(one(question) for question in questions))
    return time.process_time() - start


def main() -> int:
    parser = arguments(__doc__, repeats=5, threads=1)
    parser.add_argument("--questions", type=int, default=150, help="questions at once [%(default)s]")
    given = parser.parse_args()
    import torch

    torch.set_num_threads(given.threads)
    model = load_model("lab", settings_class("lab")(cache="off"))
    asked = lab.questions(lab.world(), None, given.questions)
    found = ways(model)
    with asyncio.Runner() as runner:
        # Unmeasured, so that nothing is opened or built in the first round.
        runner.run(processor_time(found["panel"], asked[:4], -1))
        say(f"{given.questions} questions, processor seconds")
        rounds = interleave(
            list(found), lambda name, number: runner.run(processor_time(found[name], asked, number)), given.repeats
        )
        runner.run(model.aclose())
    multiples = {name: ratios(rounds, name, BASE) for name in found}
    document = {
        "machine": machine(),
        "questions": given.questions,
        "seconds": rounds,
        "multiples_of_gram": multiples,
    }
    lines = table(("", f"processor time, {BASE} = 1: median (range)"), [(name, str(one)) for name, one in multiples.items()])
    publish(as_json(document), lines, given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())

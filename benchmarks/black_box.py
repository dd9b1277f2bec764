"""What is lost on a black box? SeaKR by hidden states and by answer consistency, and KEQA, on the laboratory's questions.

"text only" strips everything but text from the model: no log-probabilities, no hidden states, no scoring.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from benchmarks.keqa import Bench, row
from gnothi import lab
from gnothi.models import load_model, settings_class
from gnothi.models.wrappers import Wrapper
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.wrappers import Traced
from gnothi.stats.paired import paired_test
from gnothi.types import Capabilities, Decoding, Generation, Prompt, Samples, StateSpec

FIRST = "seakr, gram"
WAYS: Mapping[str, tuple[str, Mapping[str, object], bool]] = {
    FIRST: ("seakr", {}, False),
    "seakr, consistency": ("seakr", {"signal": "consistency"}, False),
    "seakr, consistency, text only": ("seakr", {"signal": "consistency"}, True),
    "keqa, text only": ("keqa", {}, True),
    "rag, text only": ("rag", {}, True),
    "cot, text only": ("cot", {}, True),
}
"""Name → method, settings, and whether the model gives text only."""


class TextOnly(Wrapper):
    """The model as an endpoint that returns text."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities()

    async def generate(self, prompt: Prompt, decoding: Decoding) -> Generation:
        return replace(await super().generate(prompt, decoding), tokens=())

    async def sample(self, prompt: Prompt, n: int, decoding: Decoding, hidden: Sequence[StateSpec] = ()) -> Samples:
        if hidden:
            raise AssertionError("a black box was asked for hidden states")
        samples = await super().sample(prompt, n, decoding)
        return Samples(tuple(replace(one, tokens=()) for one in samples.generations))

    async def score(self, prompt: Prompt, continuations: Sequence[str]) -> Any:
        raise AssertionError(f"a black box was asked for the probability of {continuations} after {prompt.question!r}")


async def measure(spec: str, n: int, seed: int) -> dict[str, Any]:
    model = load_model(spec, settings_class(spec)(cache="off"))
    try:
        bench = Bench(model, Traced(BM25Index.in_memory(lab.passages(), "lab")), n, seed)
        asked = lab.questions(lab.world(), None, n, seed)
        black_box = TextOnly(model)
        outcomes = {
            name: await bench.run(method, settings, asked, black_box if text_only else model)
            for name, (method, settings, text_only) in WAYS.items()
        }
    finally:
        await model.aclose()
    table: dict[str, Any] = {name: row(rows) for name, rows in outcomes.items()}
    for name, rows in outcomes.items():
        if name != FIRST:
            test = paired_test([one.right for one in rows], [one.right for one in outcomes[FIRST]])
            table[name] |= {f"minus {FIRST}": test.difference, "p": test.p}
    return table


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="lab")
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    table = asyncio.run(measure(given.model, given.n, given.seed))
    if given.json:
        sys.stdout.write(json.dumps(table, indent=2) + "\n")
        return
    for name, values in table.items():
        difference = f"{values[f'minus {FIRST}']:+.3f} (p = {values['p']:.2g})" if name != FIRST else ""
        sys.stdout.write(
            f"{name:<32} em {values['em']:.3f}  searches {values['searches']:.2f}  calls {values['calls']:5.1f}  {difference}\n"
        )


if __name__ == "__main__":
    main(sys.argv[1:])

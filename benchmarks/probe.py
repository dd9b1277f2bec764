"""Is one forward pass as good a gate as twenty samples, and what does either cost? On the laboratory.

    python -m benchmarks.probe [--part accuracy --part cost ...] [--probe NAME=FOLDER ...] [--n 500] [--repeats 15] [--json]

Parts
  accuracy  of each signal on lab's test questions, AUROC for "the model's own greedy answer, step by step from memory, is
            wrong", with DeLong's interval, and its difference to U's with DeLong's paired test. "first step" is what SeaKR
            measures first: the same prompt, replies of one sentence
  cost      processor time, tokens written and rows of the decode loop of a score: beyond the greedy draft that both need, and
            alone (a gate that needs no draft). Every round asks other questions, and each contender has a model of its own.
            Python's collector of garbage runs, over what was made since the models were loaded alone
Probes: ``lab``, which comes with the package, and any that --probe names.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._shared import (
    Rounds,
    arguments,
    as_json,
    leave_out_of_collection,
    machine,
    publish,
    ratios,
    rounded,
    say,
    table,
)

PARTS = ("accuracy", "cost")
BESIDE = ("gram", "perplexity")
CHEAPER = 15.0
BOOTSTRAP = 10_000
SETTLED = 0.1
CLOSE = 0.02
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


# --- accuracy --------------------------------------------------------------------------------------------------------


async def outcomes(model: Any, questions: Sequence[Any], probes: Mapping[str, Any]) -> tuple[dict[str, Floats], Mask]:
    """The scores by signal, and whether the answer is wrong."""
    from gnothi.concurrency import gather
    from gnothi.methods.steps.reader import ReaderSettings
    from gnothi.methods.steps.settings import SENTENCE_STOPS
    from gnothi.metrics import score
    from gnothi.seeding import question_scope
    from gnothi.signals import registry
    from gnothi.types import Decoding

    settings = ReaderSettings()
    signals = {name: settings.make_signal(name) for name in BESIDE}
    for name, probe in probes.items():
        signals[f"probe {name}"] = registry.create("probe", probe=probe)
        signals[f"question {name}"] = registry.create("question", probe=probe)

    async def one(question: Any) -> tuple[dict[str, float], bool]:
        prompt = settings.reading(question)
        sentence = Decoding(max_tokens=settings.max_tokens, stop=SENTENCE_STOPS)
        with question_scope(0, question.id):
            found = {
                name: await signal.measure(model, prompt, settings.reply_decoding(prompt)) for name, signal in signals.items()
            }
            for name in BESIDE:
                found[f"{name}, first step"] = await signals[name].measure(model, prompt, sentence)
            answer = await settings.answer_from(model, prompt, found["gram"])
        wrong = score(answer.text, question.answers, question.choices)["em"] < 1
        return {name: measured.uncertainty for name, measured in found.items()}, wrong

    results = await gather(*(one(question) for question in questions))
    names = list(results[0][0])
    return {name: np.array([scores[name] for scores, _ in results]) for name in names}, np.array([w for _, w in results])


def compare(scores: Mapping[str, Floats], wrong: Mask, kinds: Sequence[str]) -> dict[str, Any]:
    """AUROC of each with its interval, against U's, and by kind of question."""
    from gnothi.stats.auroc import auroc, auroc_difference, auroc_interval

    of_kind = {kind: np.array([one == kind for one in kinds]) for kind in sorted(set(kinds))}
    result = {}
    for name, values in scores.items():
        against = auroc_difference(values, scores["gram"], wrong)
        result[name] = {
            "auroc": auroc(values, wrong),
            "interval": auroc_interval(values, wrong),
            "ahead_of_u": against and against.difference,
            "ahead_interval": against and against.interval,
            "p": against and against.p,
            "by_kind": {kind: auroc(values[mask], wrong[mask]) for kind, mask in of_kind.items()},
        }
    return {"n": len(wrong), "wrong": int(wrong.sum()), "signals": result}


async def accuracy_part(args: argparse.Namespace, probes: Mapping[str, Any]) -> dict[str, Any]:
    from gnothi import lab
    from gnothi.models import load_model

    questions = lab.questions(lab.world(), None, args.n)
    model = load_model("lab")
    try:
        scores, wrong = await outcomes(model, questions, probes)
    finally:
        await model.aclose()
    return compare(scores, wrong, [question.kind for question in questions])


# --- cost ------------------------------------------------------------------------------------------------------------

Work = Callable[[Any, Any], Awaitable[object]]


def contenders(probe: Any) -> dict[str, Work]:
    """What each does with a model and a question's prompt."""
    from gnothi.concurrency import both
    from gnothi.methods.steps.reader import ReaderSettings
    from gnothi.signals import registry
    from gnothi.types import StateSpec

    settings = ReaderSettings()
    gram, learnt = settings.make_signal("gram"), registry.create("probe", probe=probe)
    sampling: Any = gram

    async def samples(model: Any, prompt: Any) -> object:
        return await model.sample(
            prompt, sampling.sampling.samples, sampling.sampling.decoding(settings.reply_decoding(prompt)), [StateSpec()]
        )

    async def state(model: Any, prompt: Any) -> object:
        foreseeing: Any = learnt
        return await foreseeing.from_prompt(model, prompt)

    async def draft(model: Any, prompt: Any) -> object:
        return await model.generate(prompt, settings.reply_decoding(prompt))

    return {
        "draft": draft,
        "draft and probe": lambda model, prompt: both(draft(model, prompt), state(model, prompt)),
        "draft and U": lambda model, prompt: both(draft(model, prompt), samples(model, prompt)),
        "probe": state,
        "U": samples,
    }


async def cost_part(args: argparse.Namespace, probe: Any) -> dict[str, Any]:
    from gnothi import events, lab
    from gnothi.concurrency import gather
    from gnothi.methods.steps.reader import ReaderSettings
    from gnothi.models import load_model
    from gnothi.retrieval.bm25 import BM25Index
    from gnothi.seeding import question_scope

    settings, works = ReaderSettings(), contenders(probe)
    batches = args.repeats + 1
    world = lab.world()
    asked = [lab.questions(world, None, args.batch, seed=2 + number) for number in range(batches)]
    index = BM25Index.in_memory(lab.passages(), "lab")

    async def reading(question: Any) -> Any:
        found = await index.search(question.text, args.passages) if args.passages else []
        return settings.reading(question, [one.passage for one in found])

    prompts = [[await reading(question) for question in batch] for batch in asked]
    models = {name: load_model("lab") for name in works}

    async def run(name: str, number: int) -> dict[str, float]:
        batch = asked[number]
        before, began, cpu = dict(models[name].statistics), time.perf_counter(), time.process_time()

        async def one(question: Any, prompt: Any) -> None:
            with question_scope(0, question.id):
                await works[name](models[name], prompt)

        with events.record() as seen:
            await gather(*map(one, batch, prompts[number]))
        seconds = time.perf_counter() - began
        # What a model clears away behind its last answer is its own cost, not the next one's.
        await asyncio.sleep(SETTLED)
        after, calls = models[name].statistics, [event for event in seen if isinstance(event, events.ModelCall)]
        return {
            "cpu_seconds": time.process_time() - cpu,
            "seconds": seconds,
            "tokens": sum(call.generated_tokens for call in calls) / len(batch),
            "read": sum(call.prompt_tokens for call in calls) / len(batch),
            "rows": (after["fed_rows"] - before["fed_rows"]) / len(batch),
        }

    names, rounds = list(works), list[dict[str, dict[str, float]]]()
    try:
        for number in range(batches):  # the first one warms up
            if number == 1:
                leave_out_of_collection()
            order = [*names[number % len(names) :], *names[: number % len(names)]]
            found = {name: await run(name, number) for name in order}
            if number:
                rounds.append({name: found[name] for name in names})
                say(f"  round {number}: " + ", ".join(f"{name} {rounded(one['cpu_seconds'])} s" for name, one in found.items()))
    finally:
        for model in models.values():
            await model.aclose()
    return {
        "batch": args.batch,
        "passages": args.passages,
        "k": settings.measuring.samples,
        "rounds": rounds,
        **shares(rounds),
    }


def shares(rounds: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, Any]:
    """How many times U's cost is the probe's: beyond the draft (of the sums over all rounds, since differences of single rounds
    are within their noise; with a bootstrap interval over rounds), and alone (of each round). None: the probe took nothing."""

    def beyond_draft(what: str, rounds: Sequence[Mapping[str, Mapping[str, float]]]) -> float | None:
        probe, u = (sum(one[f"draft and {name}"][what] - one["draft"][what] for one in rounds) for name in ("probe", "U"))
        return u / probe if probe > 0 else None

    beyond = {what: beyond_draft(what, rounds) for what in ("cpu_seconds", "tokens", "rows")}
    random = np.random.default_rng(0)
    drawn = [[rounds[at] for at in random.integers(len(rounds), size=len(rounds))] for _ in range(BOOTSTRAP)]
    resampled = [beyond_draft("cpu_seconds", one) for one in drawn]
    low, high = np.quantile([np.inf if one is None else one for one in resampled], [0.025, 0.975], method="nearest")
    of: Rounds = [{name: values["cpu_seconds"] for name, values in one.items()} for one in rounds]
    return {
        "per_question": {
            name: {what: statistics.mean(one[name][what] for one in rounds) for what in ("tokens", "read", "rows")}
            for name in rounds[0]
        },
        "u_to_probe_beyond_draft": beyond,
        "u_to_probe_beyond_draft_cpu_interval": [float(one) if np.isfinite(one) else None for one in (low, high)],
        "u_to_probe_alone_cpu": ratios(of, "U", "probe"),
        "to_draft_cpu": {name: ratios(of, name, "draft") for name in of[0]},
    }


# --- showing ---------------------------------------------------------------------------------------------------------


def targets(document: Mapping[str, Any]) -> dict[str, bool]:
    met = {}
    if found := document.get("accuracy"):
        met[f"probe: AUROC within {CLOSE} of U's"] = found["signals"]["probe lab"]["ahead_of_u"] >= -CLOSE
    if found := document.get("cost"):
        beyond = found["u_to_probe_beyond_draft"]["cpu_seconds"]
        alone = found["u_to_probe_alone_cpu"].median
        met[f"probe: at most 1/{CHEAPER:.0f} of U's processor time"] = alone >= CHEAPER
        met[f"probe: at most 1/{CHEAPER:.0f} of U's processor time beyond the draft"] = beyond is None or beyond >= CHEAPER
    return met


def lines(document: Mapping[str, Any]) -> list[str]:
    out: list[str] = []
    if found := document.get("accuracy"):
        kinds = list(next(iter(found["signals"].values()))["by_kind"])
        rows = []
        for name, one in found["signals"].items():
            low, high = one["interval"]
            ahead = one["ahead_interval"]
            difference = f"{one['ahead_of_u']:+.3f}" + (f" [{ahead.low:+.3f}, {ahead.high:+.3f}]" if ahead else "")
            by_kind = ["-" if area is None else f"{area:.3f}" for area in one["by_kind"].values()]
            rows.append([name, f"{one['auroc']:.3f} [{low:.3f}, {high:.3f}]", difference, f"{one['p']:.2g}", *by_kind])
        out += [f"{found['n']} questions, {found['wrong']} answered wrongly", ""]
        out += table(["", "AUROC", "ahead of U (gram)", "p", *kinds], rows)
    if found := document.get("cost"):
        rows = [
            [name, *(rounded(one[what]) for what in ("read", "tokens", "rows")), str(found["to_draft_cpu"][name])]
            for name, one in found["per_question"].items()
        ]
        before = f"after {found['passages']} passages, " if found["passages"] else ""
        out += ["", f"a question, {before}{found['batch']} at a time; k = {found['k']}", ""]
        out += table(["", "tokens read", "tokens written", "rows", "processor time, x draft"], rows)
        beyond = found["u_to_probe_beyond_draft"]
        low, high = found["u_to_probe_beyond_draft_cpu_interval"]
        out += [
            "",
            "U costs as many times what the probe does, in processor time: beyond the draft "
            f"{_times(beyond['cpu_seconds'])} [{_times(low)}, {_times(high)}], alone {found['u_to_probe_alone_cpu']}; "
            f"in tokens written {_times(beyond['tokens'])}, in rows of the decode loop {_times(beyond['rows'])}",
        ]
    return [*out, "", *(f"{'met    ' if met else 'NOT MET'} {target}" for target, met in document["targets_met"].items())]


def _times(value: float | None) -> str:
    return "beyond measure" if value is None else rounded(value)


def main(argv: Sequence[str] | None = None) -> None:
    from gnothi.signals.probe_folder import open_probe

    parser = arguments(__doc__, repeats=15)
    parser.add_argument("--part", action="append", choices=PARTS, help="only these (repeat)")
    parser.add_argument("--probe", action="append", default=[], metavar="NAME=FOLDER", help="a further probe (repeat)")
    parser.add_argument("--n", type=int, default=500, help="test questions [%(default)s]")
    parser.add_argument("--batch", type=int, default=80, help="questions of a round of cost [%(default)s]")
    parser.add_argument("--passages", type=int, default=0, help="put before each question in cost, which makes prompts long")
    args = parser.parse_args(argv)
    import torch

    torch.set_num_threads(args.threads)
    named = dict(one.partition("=")[::2] for one in args.probe)
    probes = {"lab": open_probe("lab"), **{name: open_probe(folder) for name, folder in named.items()}}
    document: dict[str, Any] = {"benchmark": "probe", "machine": machine()}
    for part in args.part or PARTS:
        work = accuracy_part(args, probes) if part == "accuracy" else cost_part(args, probes["lab"])
        document[part] = asyncio.run(work)
    document["targets_met"] = targets(document)
    publish(as_json(document), lines(document), args.json)


if __name__ == "__main__":
    main()

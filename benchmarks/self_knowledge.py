"""Self-knowledge training on the lab: AUROC of P("Yes") for truth, reading and recall before and after, by seed and variant.

The shipped model already says what it knows (it is trained to), so each run starts from a copy that has unlearnt it: a
supervised stage on Yes and No at random. What it knows it keeps: a random Yes goes on with the model's own answer.

python -m benchmarks.self_knowledge                        the default variant, three seeds
python -m benchmarks.self_knowledge --variants all         the four variants of the advantage
Finished runs are kept in --work and not repeated; an interrupted one goes on.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks._shared import machine, publish, say, spread, table
from gnothi import lab
from gnothi.concurrency import gather
from gnothi.lab.probes import Probes
from gnothi.lab.questions import facts_needed
from gnothi.methods.steps.parsing import read_reply
from gnothi.methods.steps.prompts import ANSWER, ask
from gnothi.models import LAB_FOLDER, load_model
from gnothi.models.engine.loading import load
from gnothi.models.rendering import make_renderer
from gnothi.models.settings import ModelSettings
from gnothi.signals.kinds.self_report import AFFIRMATIVE, KNOW, NEGATIVE, probability_of_yes
from gnothi.stats.auroc import auroc, auroc_interval
from gnothi.training.finetuning import METRICS, Origin
from gnothi.training.self_knowledge import stages
from gnothi.training.self_knowledge.answers import Answers, Familiar, sampling
from gnothi.training.self_knowledge.settings import AnswerSettings, TrainingSettings
from gnothi.training.self_knowledge.stages import train
from gnothi.types import Decoding, Question

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "ranks, entropy of positive": {},
    "no ranks, no entropy": {"mix": 1.0, "entropy": "none"},
    "ranks, no entropy": {"entropy": "none"},
    "ranks, entropy of all": {"entropy": "symmetric"},
}
"""The first is the default."""
ABILITIES = ("recall often", "recall often, short", "recall seldom", "read 1 passage", "read 3 passages")
ANSWERS = AnswerSettings()
PLAIN = ModelSettings(pack_weights=False)
TRAINING = TrainingSettings(warm_start_steps=30, warm_start_rate=1e-3, learning_rate=5e-4)
WEAKENING = TrainingSettings(warm_start="format", warm_start_steps=200, warm_start_rate=1e-3)
Measured = dict[str, Any]


def questions(count: int, held_out: int) -> tuple[list[Question], list[Question]]:
    """One-hop questions to train on, and test questions that need none of their facts."""
    world = lab.world()
    training = lab.training_questions(world, "one_hop", count)
    return training, lab.questions(world, "one_hop", held_out, without=facts_needed(training))


def measure(folder: Path, asked: Sequence[Question], probes: Probes) -> Measured:
    """AUROC of P("Yes") for the truth of the model's own greedy answer, from memory; and its abilities (shares of replies)."""
    model = load_model(str(folder))

    async def ask_one(question: Question) -> tuple[float, bool]:
        answer = await model.generate(ask(ANSWER, question), Decoding(max_tokens=20, stop=("\n",)))
        yes, no = await model.score(ask(KNOW, question), (AFFIRMATIVE, NEGATIVE))
        right = ANSWERS.correct(read_reply(answer.text).answer, question.answers)
        return probability_of_yes(yes.logprob, no.logprob), right

    async def ask_all() -> list[tuple[float, bool]]:
        try:
            return list(await gather(*(ask_one(question) for question in asked)))
        finally:
            await model.aclose()

    found = asyncio.run(ask_all())
    yes, right = [one for one, _ in found], [one for _, one in found]
    net, tokenizer, _ = load(str(folder), str(folder), PLAIN)
    interval = auroc_interval(yes, right)
    able = probes.measure(net, tokenizer)
    return {
        "auroc": auroc(yes, right),
        "interval": list(interval) if interval else None,
        "accuracy": sum(right) / len(right),
        "yes_right": sum(p for p, r in found if r) / max(1, sum(right)),
        "yes_wrong": sum(p for p, r in found if not r) / max(1, len(right) - sum(right)),
        **{name: able[name] for name in ABILITIES},
    }


def sampled(out: Path, folder: Path, asked: Sequence[Question]) -> list[Familiar]:
    with Answers(out, asked, {"model": folder.name}) as collecting:
        if collecting.missing:
            model = load_model(str(folder))

            async def run() -> None:
                try:
                    await collecting.collect(sampling(collecting.by_name, model, ANSWERS))
                finally:
                    await model.aclose()

            asyncio.run(run())
        return collecting.finish()


def weaken(out: Path, asked: Sequence[Familiar], settings: TrainingSettings) -> None:
    """A copy of the shipped model that says Yes and No at random."""
    from gnothi.training.self_knowledge.policy import Prompts

    if (out / "config.json").is_file():
        return
    from peft import LoraConfig, get_peft_model
    from transformers import set_seed

    model, tokenizer, declared = load(str(LAB_FOLDER), "lab", PLAIN)
    set_seed(settings.seed)
    adapted: Any = get_peft_model(model, LoraConfig(r=settings.rank, lora_alpha=2 * settings.rank, target_modules="all-linear"))
    prompts = Prompts(tokenizer, make_renderer("auto", tokenizer, declared.renderer))
    stages.run(adapted, prompts, asked, settings, out / "scratch")
    adapted.merge_and_unload().save_pretrained(out)
    tokenizer.save_pretrained(out)
    shutil.copy(LAB_FOLDER / "gnothi.json", out)


def one_run(work: Path, seed: int, variant: str, args: argparse.Namespace, probes: Probes) -> Measured:
    training, held_out = questions(args.questions, args.held_out)
    weak = work / f"weak-{seed}"
    weaken(weak, sampled(work / "shipped-answers", LAB_FOLDER, training), replace(WEAKENING, seed=seed))
    before = cached(work / f"weak-{seed}.json", lambda: measure(weak, held_out, probes))
    familiar = sampled(work / f"weak-{seed}-answers", weak, training)
    settings = replace(TRAINING, seed=seed, steps=args.steps, **VARIANTS[variant])
    out = work / folder_of(variant, seed)
    out.mkdir(parents=True, exist_ok=True)

    def trained() -> Measured:
        began = time.monotonic()
        header = train(out, Origin(str(weak), str(weak), PLAIN), familiar, settings, ANSWERS.correct)
        seconds = time.monotonic() - began
        return {
            "seed": seed,
            "variant": variant,
            "minutes": seconds / 60,
            "steps": header["steps"],
            "best": header["best_step"],
            "validation": {when: header[when] for when in ("before", "after")},
        }

    summary = cached(work / f"{out.name}-summary.json", trained)
    after = cached(work / f"{out.name}-after.json", lambda: measure(out, held_out, probes))
    return summary | {"before": before, "after": after}


def folder_of(variant: str, seed: int) -> str:
    return f"{variant.replace(' ', '-').replace(',', '')}-{seed}"


def cached(path: Path, compute: Any) -> Measured:
    if not path.is_file():
        found = compute()
        path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return dict(json.loads(path.read_text("utf-8")))


def draw(work: Path, runs: Sequence[Measured], out: Path) -> None:
    """The curves of the default variant's runs, one line a seed."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(11, 2.8), layout="constrained")
    panels = (
        ("validation_reward", "reward (validation)"),
        ("auroc", 'AUROC of P("Yes")'),
        ("yes_known", 'P("Yes"): known, unknown (dashed)'),
        ("hallucination", "hallucination, refusal (dashed)"),
    )
    beside = {"yes_known": "yes_unknown", "hallucination": "refusal"}
    for run in runs:
        file = work / folder_of(run["variant"], run["seed"]) / METRICS
        lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
        validated = [line for line in lines if "validation_reward" in line]
        for axis, (key, title) in zip(axes, panels, strict=True):
            for shown, style in ((key, "-"), (beside.get(key), "--")):
                if shown:
                    steps = [line["step"] for line in validated]
                    values = [line[shown] for line in validated]
                    axis.plot(steps, values, style, color=f"C{run['seed']}", linewidth=1.2)
            axis.set_title(title, fontsize=9)
            axis.grid(alpha=0.3)
    for axis in axes[1:]:
        axis.set_ylim(-0.02, 1.02)
    figure.supxlabel("step of reinforcement learning", fontsize=9)
    figure.savefig(out, metadata={"Date": None})


def lines(shipped: Measured, runs: Sequence[Measured]) -> list[str]:
    def auroc_of(measured: Measured) -> str:
        low, high = measured["interval"]
        return f"{measured['auroc']:.3f} [{low:.3f}, {high:.3f}]"

    rows = [
        [
            run["variant"], str(run["seed"]), auroc_of(run["before"]), auroc_of(run["after"]),
            f"{run['after']['yes_right']:.2f} / {run['after']['yes_wrong']:.2f}",
            *(f"{run['before'][name]:.3f} / {run['after'][name]:.3f}" for name in ABILITIES),
            f"{run['best']} of {run['steps']}", f"{run['minutes']:.1f}",
        ]
        for run in runs
    ]  # fmt: skip
    head = ["variant", "seed", "AUROC before", "after", "P(Yes) right / wrong", *ABILITIES, "best step", "minutes"]
    shown = [f"the shipped model: AUROC {auroc_of(shipped)}", "", *table(head, rows), ""]
    for variant in dict.fromkeys(run["variant"] for run in runs):
        chosen = [run["after"]["auroc"] for run in runs if run["variant"] == variant]
        shown.append(f"{variant}: AUROC after {spread(chosen)} of {len(chosen)} seeds")
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2", help="[%(default)s]")
    parser.add_argument("--variants", default="default", choices=["default", "all"], help="[%(default)s]")
    parser.add_argument("--steps", type=int, default=100, help="of reinforcement learning, at most [%(default)s]")
    parser.add_argument("--questions", type=int, default=500, help="to train on [%(default)s]")
    parser.add_argument("--held-out", type=int, default=500, help="to test on [%(default)s]")
    parser.add_argument("--work", type=Path, default=Path("runs/self-knowledge"), help="folder of the runs [%(default)s]")
    parser.add_argument("--figure", type=Path, help="draw the default variant's curves here")
    parser.add_argument("--threads", type=int, default=1, help="[%(default)s]")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(args.threads)
    args.work.mkdir(parents=True, exist_ok=True)
    probes = Probes(lab.world(), n=256)
    _, held_out = questions(args.questions, args.held_out)
    shipped = cached(args.work / "shipped.json", lambda: measure(LAB_FOLDER, held_out, probes))
    runs = []
    for variant in list(VARIANTS)[: 1 if args.variants == "default" else None]:
        for seed in map(int, args.seeds.split(",")):
            say(f"{variant}, seed {seed} ...")
            runs.append(one_run(args.work, seed, variant, args, probes))
            say(json.dumps(runs[-1]))
    if args.figure:
        draw(args.work, [run for run in runs if run["variant"] == next(iter(VARIANTS))], args.figure)
    document = {"machine": machine(), "held_out": len(held_out), "shipped": shipped, "runs": runs}
    publish(document, lines(shipped, runs), args.json)


if __name__ == "__main__":
    main()

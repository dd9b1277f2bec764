"""Does SKILL-RAG's filter drop what misleads and keep what answers? On the laboratory.

    python -m benchmarks.skill_rag [--model lab|PATH] [--part filter --part accuracy ...] [--plots FOLDER] [--json]

Parts
  filter    sentences of the passages found for one-hop questions about entities that the library holds: which states the
            fact asked for (whether right or outdated), which is a distractor (another fact, another entity); share kept over
            the threshold, by each task ("know": PMI, "useful": log-odds)
  accuracy  exact match and the reader's prompt tokens of rag and skill_rag over the same passages, and of the baselines
  speed     1,000 sentences scored at once, one at a time, and one at a time by the library's forward pass; with the model's own
            prompts and with a general model's (renderer "plain")
  report    P("Yes, I know") against answers from memory: AUROC, calibration error before and after Platt and isotonic fits
The chosen threshold is the greatest one that keeps 97% of the answer sentences of 300 training questions, none of whose facts
the test questions ask for.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks._shared import leave_out_of_collection, machine, publish, rounded, say, table

PARTS = ("filter", "accuracy", "speed", "report")
TASKS = ("know", "useful")
"""What the filter asks."""
KEEP = 0.97
Floats = NDArray[np.float64]


# --- sentences -------------------------------------------------------------------------------------------------------


def answer_sentence(question: Any, title: str, sentence: str) -> bool:
    """Whether the sentence states the fact that the one-hop question asks for, whatever object it names."""
    from gnothi.lab.language import BY_NAME

    (hop,) = question.metadata["hops"]
    if title != hop["subject"]:
        return False
    forms = BY_NAME[hop["relation"]].statements
    return any(re.fullmatch(re.escape(form.format(s=title, o="@")).replace("@", ".+"), sentence) for form in forms)


async def scored(model: Any, retriever: Any, questions: Sequence[Any], task: str, k: int) -> tuple[Floats, NDArray[np.bool_]]:
    """(scores, answers): the score of every sentence found for every question, and whether it is an answer sentence."""
    from gnothi.concurrency import gather
    from gnothi.filtering.self_knowledge import Informative
    from gnothi.filtering.sentences import sentences_of
    from gnothi.methods.steps.prompts import TASKS as ALL

    judge = Informative(model, ALL[task])

    async def one(question: Any) -> tuple[list[float], list[bool]]:
        found = [found.passage for found in await retriever.search(question.text, k)]
        sentences = sentences_of(found)
        answers = [answer_sentence(question, one.source.title, one.text) for one in sentences]
        return await judge.scores(question, sentences), answers

    results = await gather(*(one(question) for question in questions))
    scores = np.array([score for scores, _ in results for score in scores])
    return scores, np.array([answer for _, answers in results for answer in answers])


def rates(scores: Floats, answers: NDArray[np.bool_], threshold: float) -> dict[str, float]:
    kept = scores > threshold
    found = int((kept & answers).sum())
    return {
        "threshold": threshold,
        "answers_kept": found / max(int(answers.sum()), 1),
        "distractors_dropped": float((~kept[~answers]).mean()),
        "precision": found / max(int(kept.sum()), 1),
    }


def greatest(scores: Floats, answers: NDArray[np.bool_], keep: float = KEEP) -> float:
    """The greatest threshold above which that share of the answer sentences lies."""
    ranked = np.sort(scores[answers])
    return float(np.nextafter(ranked[int((1 - keep) * len(ranked))], -np.inf))


async def within(model: Any, retriever: Any, questions: Sequence[Any], task: str, k: int) -> float | None:
    """AUROC of the scores over the sentences found for these questions."""
    from gnothi.stats.auroc import auroc

    return auroc(*await scored(model, retriever, questions, task, k))


async def filter_part(model: Any, retriever: Any, args: argparse.Namespace) -> dict[str, Any]:
    from gnothi import lab
    from gnothi.lab import training_questions
    from gnothi.stats.auroc import auroc, auroc_interval

    held = [q for q in lab.questions(lab.world(), "one_hop", args.n) if q.metadata["coverage"] != "absent"]
    train = [q for q in training_questions(lab.world(), "one_hop", args.training) if q.metadata["coverage"] != "absent"]
    results: dict[str, Any] = {}
    for task in args.task:
        chosen = greatest(*await scored(model, retriever, train, task, args.k))
        scores, answers = await scored(model, retriever, held, task, args.k)
        shares = np.linspace(0, 1, 201)
        curve = np.unique(np.concatenate([np.quantile(scores, shares), np.quantile(scores[answers], shares)]))[:-1]
        results[task] = {
            "questions": len(held),
            "sentences": len(scores),
            "answer_sentences": int(answers.sum()),
            "auroc": auroc(scores, answers),
            "auroc_interval": auroc_interval(scores, answers),
            "auroc_by_familiarity": {
                level: await within(model, retriever, [q for q in held if q.metadata["familiarity"] == level], task, args.k)
                for level in ("often", "seldom", "never")
            },
            "at_zero": rates(scores, answers, 0.0),
            "at_chosen": rates(scores, answers, chosen),
            "curve": [rates(scores, answers, float(threshold)) for threshold in curve],
        }
        say(f"{task}: at 0 {results[task]['at_zero']}; chosen {results[task]['at_chosen']}")
    return results


# --- answers ---------------------------------------------------------------------------------------------------------


async def accuracy_part(model: Any, retriever: Any, args: argparse.Namespace) -> dict[str, Any]:
    from gnothi import lab
    from gnothi.lab import training_questions

    train = [q for q in training_questions(lab.world(), "one_hop", args.training) if q.metadata["coverage"] != "absent"]
    chosen = {task: greatest(*await scored(model, retriever, train, task, args.k)) for task in args.task}
    runs: dict[str, tuple[str, dict[str, object]]] = {"rag": ("rag", {"k": args.k}), "direct": ("direct", {})}
    for task, threshold in chosen.items():
        settings: dict[str, object] = {"k": args.k, "task": task}
        runs[f"skill_rag, {task} > 0"] = ("skill_rag", settings)
        runs[f"skill_rag, {task} > {threshold:.3f}"] = ("skill_rag", settings | {"threshold": threshold})
    if args.only_filters:
        return await compare_runs(model, retriever, args, runs)
    gated: dict[str, object] = {"k": args.k, "task": "useful", "gate": "self_report"}
    runs["skill_rag, useful > 0, gate=self_report"] = ("skill_rag", gated)
    runs |= {f"filco, {one}": ("filco", {"k": args.k, "measure": one}) for one in ("strinc", "lexical", "cxmi")}
    runs["filco, strinc, oracle"] = ("filco", {"k": args.k, "oracle": True})
    runs["crag"] = ("crag", {"k": args.k})
    runs["skr"] = ("skr", {"k": args.k})
    return await compare_runs(model, retriever, args, runs)


async def compare_runs(
    model: Any, retriever: Any, args: argparse.Namespace, runs: Mapping[str, tuple[str, dict[str, object]]]
) -> dict[str, Any]:
    from gnothi import lab, methods

    results: dict[str, Any] = {}
    for kind in args.kind:
        questions = lab.questions(lab.world(), None if kind == "mix" else kind, args.n)
        reference = (
            None if "skr" not in runs else await knowledge(model, retriever, None if kind == "mix" else kind, args.experiences)
        )
        outcomes: dict[str, list[tuple[float, int, int, int]]] = {}
        for name, (method, settings) in runs.items():
            resources = {"model": model, "retriever": retriever, "reference": reference}
            outcomes[name] = await answered(methods.create(method, resources, settings), questions)
            results.setdefault(kind, {})[name] = compared(outcomes[name], outcomes["rag"])
            say(f"{kind}: {name} {results[kind][name]}")
    return results


async def knowledge(model: Any, retriever: Any, kind: Any, number: int) -> Any:
    """SKR's reference from so many training questions, answered with and without retrieval."""
    from gnothi import lab, methods
    from gnothi.filtering.knowledge import Experience, KnowledgeReference
    from gnothi.lab import training_questions

    questions = training_questions(lab.world(), kind, number)
    resources = {"model": model, "retriever": retriever}
    memory, retrieval = [await answered(methods.create(name, resources, {}), questions) for name in ("direct", "rag")]
    return KnowledgeReference(
        [
            Experience(question.text, alone[0] == 1)
            for question, alone, read in zip(questions, memory, retrieval, strict=True)
            if alone[0] or read[0]
        ]
    )


async def answered(method: Any, questions: Sequence[Any]) -> list[tuple[float, int, int, int]]:
    """(exact match, prompt tokens of the reader, passages read, prompt tokens of all calls) of each question."""
    from gnothi.concurrency import gather
    from gnothi.events import ModelCall, Usage, record
    from gnothi.metrics import score

    async def one(question: Any) -> tuple[float, int, int, int]:
        with record() as happened:
            answer = await method(question)
        calls = [event for event in happened if isinstance(event, ModelCall) and event.operation != "score"]
        reader = max([call.prompt_tokens for call in calls if call.task == "reason"] or [calls[-1].prompt_tokens])
        return score(answer.text, question.answers)["em"], reader, len(answer.evidence), Usage.of(happened).prompt_tokens

    return await gather(*(one(question) for question in questions))


def compared(outcome: Sequence[tuple[float, int, int, int]], rag: Sequence[tuple[float, int, int, int]]) -> dict[str, Any]:
    from gnothi.stats.intervals import mean_interval
    from gnothi.stats.paired import paired_test

    matches, tokens, passages, everything = (np.array(column, float) for column in zip(*outcome, strict=True))
    base = np.array([one[0] for one in rag])
    test = paired_test(matches, base)
    return {
        "exact_match": float(matches.mean()),
        "interval": mean_interval(matches),
        "reader_tokens": float(tokens.mean()),
        "reader_tokens_of_rag": float(tokens.sum() / sum(one[1] for one in rag)),
        "passages": float(passages.mean()),
        "all_tokens": float(everything.mean()),
        "ahead_of_rag": test.difference,
        "p": test.p,
    }


# --- speed and report ------------------------------------------------------------------------------------------------


async def speed_part(args: argparse.Namespace) -> dict[str, Any]:
    """By renderer: the model's own short prompts, and those of a general model, with instruction and demonstrations."""
    from benchmarks._lab_runs import lab_plan
    from gnothi.session.resources import opened

    found = {}
    for renderer in ("auto", "plain"):
        async with opened([lab_plan("rag", [f"model.renderer={renderer}"], args.model)]) as resources:
            found[renderer] = await timed(resources.model, args, renderer)
            say(f"speed, {renderer}: {found[renderer]}")
    return found


async def timed(model: Any, args: argparse.Namespace, renderer: str) -> dict[str, float]:
    from gnothi import lab
    from gnothi.filtering.self_knowledge import Informative
    from gnothi.filtering.sentences import sentences_of
    from gnothi.signals.kinds.self_report import KNOW
    from gnothi.types import Prompt

    judge = Informative(model)
    sentences = sentences_of(lab.passages())[: args.sentences]
    first, second, third, warm = lab.questions(lab.world(), "one_hop", 4)
    await judge.scores(warm, sentences[:50])
    leave_out_of_collection()
    clocks = time.perf_counter, time.process_time
    marks = [[clock() for clock in clocks]]
    await judge.scores(first, sentences)
    marks.append([clock() for clock in clocks])
    for sentence in sentences:
        await model.score(Prompt(KNOW, second.text, (sentence.passage,)), ("Yes",))
    marks.append([clock() for clock in clocks])
    reading = by_library(args.model, renderer, [Prompt(KNOW, third.text, (sentence.passage,)) for sentence in sentences])
    marks.append([clock() for clock in clocks])
    reading()
    marks.append([clock() for clock in clocks])
    (together, cpu_together), (alone, cpu_alone), _, (library, cpu_library) = np.diff(marks, axis=0).tolist()
    return {
        "sentences": len(sentences),
        "together_s": together,
        "alone_s": alone,
        "library_alone_s": library,
        "faster_than_alone": alone / together,
        "faster_than_library_alone": library / together,
        "faster_than_alone_cpu": cpu_alone / cpu_together,
        "faster_than_library_alone_cpu": cpu_library / cpu_together,
    }


def by_library(spec: str, renderer: str, prompts: Sequence[Any]) -> Callable[[], None]:
    """The library's own forward pass over the prompts, one after the other, each read whole."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from gnothi.models import rendering

    folder = Path(rendering.__file__).parents[1] / "lab" / "model" if spec == "lab" else spec
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    network: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    network.eval()
    render = rendering.Plain() if renderer == "plain" else rendering.Tagged()

    @torch.inference_mode()
    def read() -> None:
        for prompt in prompts:
            ids = tokenizer(rendering.join(render.render(prompt), "Yes"), return_tensors="pt")["input_ids"]
            logits = network(input_ids=ids[:, :-1], use_cache=False).logits
            float(torch.log_softmax(logits[0, -1], dim=-1)[ids[0, -1]])

    return read


async def report_part(model: Any, args: argparse.Namespace) -> dict[str, Any]:
    from gnothi import lab, methods
    from gnothi.concurrency import gather
    from gnothi.lab import training_questions
    from gnothi.metrics import score
    from gnothi.stats.auroc import auroc
    from gnothi.stats.probabilities import fit_isotonic, fit_platt
    from gnothi.stats.reliability import ece

    method = methods.create("direct", {"model": model}, {"signal": "self_report"})

    async def told(questions: Sequence[Any]) -> tuple[Floats, NDArray[np.bool_]]:
        answers = await gather(*(method(question) for question in questions))
        right = [score(one.text, question.answers)["em"] == 1 for one, question in zip(answers, questions, strict=True)]
        return np.array([1.0 - (one.uncertainty or 0.0) for one in answers]), np.array(right)

    (fitted, was_right), (yes, right) = (
        await told(training_questions(lab.world(), "one_hop", args.n)),
        await told(lab.questions(lab.world(), "one_hop", args.n)),
    )
    return {
        "auroc": auroc(yes, right),
        "right": float(right.mean()),
        "ece": ece(yes, right),
        "ece_platt": ece(fit_platt(log_odds(fitted), was_right)(log_odds(yes)), right),
        "ece_isotonic": ece(fit_isotonic(fitted, was_right)(yes), right),
    }


def log_odds(probability: Floats) -> Floats:
    clipped = np.clip(probability, 1e-9, 1 - 1e-9)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))


# --- showing ---------------------------------------------------------------------------------------------------------


def plot(results: dict[str, Any], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(results), figsize=(5.2 * len(results), 3.8), squeeze=False, layout="constrained")
    for panel, (task, result) in zip(panels[0], results.items(), strict=True):
        curve = result["curve"]
        x = [one["threshold"] for one in curve]
        named = {
            "answers_kept": "recall: answer sentences kept",
            "precision": "precision",
            "distractors_dropped": "distractors dropped",
        }
        for key, label in named.items():
            panel.plot(x, [one[key] for one in curve], label=label)
        panel.axvline(0, color="grey", linewidth=0.8)
        panel.axvline(result["at_chosen"]["threshold"], color="grey", linewidth=0.8, linestyle=":")
        score = "PMI" if task == "know" else "log-odds"
        panel.set(
            xlabel=f"{score} of “{task}” (nats); dotted: chosen", ylim=(0, 1.02), title=f"{task}, AUROC {result['auroc']:.3f}"
        )
    figure.legend(*panels[0][0].get_legend_handles_labels(), loc="outside lower center", ncol=3, fontsize=9, frameon=False)
    figure.savefig(folder / "skill-rag-filter.png", dpi=110)
    pyplot.close(figure)


def lines(document: dict[str, Any]) -> list[str]:
    out: list[str] = []
    if found := document.get("filter"):
        rows = []
        for task, result in found.items():
            for where in ("at_zero", "at_chosen"):
                one = result[where]
                figures = [f"{one[key]:.3f}" for key in ("threshold", "answers_kept", "distractors_dropped", "precision")]
                by_level = [f"{area:.3f}" for area in result["auroc_by_familiarity"].values()]
                rows.append([task, f"{result['auroc']:.3f}", *by_level, *figures])
        out += table(
            ["task", "AUROC", "often", "seldom", "never", "threshold", "answers kept", "distractors dropped", "precision"], rows
        )
    for kind, runs in document.get("accuracy", {}).items():
        header = ["", "exact match", "interval", "reader's tokens", "of rag's", "all tokens", "passages", "ahead of rag", "p"]
        rows = []
        for name, one in runs.items():
            low, high = one["interval"]
            cells = [f"{one['exact_match']:.3f}", f"{low:.3f}-{high:.3f}", rounded(one["reader_tokens"])]
            cells += [
                f"{one['reader_tokens_of_rag']:.0%}",
                rounded(one["all_tokens"]),
                rounded(one["passages"]),
                f"{one['ahead_of_rag']:+.3f}",
                f"{one['p']:.2g}",
            ]
            rows.append([name, *cells])
        out += ["", kind, "", *table(header, rows)]
    for name, figures in [*document.get("speed", {}).items(), ("report", document.get("report", {}))]:
        if figures:
            out += ["", f"{name}: " + ", ".join(f"{key} {rounded(value)}" for key, value in figures.items())]
    return out


async def measure(args: argparse.Namespace) -> dict[str, Any]:
    from benchmarks._lab_runs import lab_plan
    from gnothi.session.resources import opened

    document: dict[str, Any] = {"model": args.model, "machine": machine()}
    async with opened([lab_plan("rag", model=args.model)]) as resources:
        model, retriever = resources.model, resources.retriever
        for part in args.part or PARTS:
            if part == "filter":
                document[part] = await filter_part(model, retriever, args)
            elif part == "accuracy":
                document[part] = await accuracy_part(model, retriever, args)
            elif part == "speed":
                document[part] = await speed_part(args)
            else:
                document[part] = await report_part(model, args)
    return document


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="lab", help="the model that answers and filters [%(default)s]")
    parser.add_argument("--part", action="append", choices=PARTS, help="only these parts")
    parser.add_argument("--task", action="append", choices=TASKS, help="what the filter asks [all]")
    parser.add_argument("--only-filters", action="store_true", help="accuracy without the baselines beside rag and direct")
    parser.add_argument("--kind", action="append", choices=("one_hop", "two_hop", "mix"), help="questions [one_hop]")
    parser.add_argument("--n", type=int, default=500, help="questions [%(default)s]")
    parser.add_argument("--training", type=int, default=300, help="questions that choose the threshold [%(default)s]")
    parser.add_argument("--experiences", type=int, default=500, help="questions of SKR's reference [%(default)s]")
    parser.add_argument("--k", type=int, default=10, help="passages per question [%(default)s]")
    parser.add_argument("--sentences", type=int, default=1000, help="sentences to time [%(default)s]")
    parser.add_argument("--plots", type=Path, help="folder for the picture")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    args = parser.parse_args(argv)
    args.task, args.kind = args.task or list(TASKS), args.kind or ["one_hop"]
    document = asyncio.run(measure(args))
    if args.plots and "filter" in document:
        plot(document["filter"], args.plots)
    publish(document, lines(document), args.json)


if __name__ == "__main__":
    main()

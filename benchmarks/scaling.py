"""How does the cost grow? Exponents fitted against k, prompt length, concurrency and the size of the corpus.

    python -m benchmarks.scaling [--only samples,prompt,concurrency,corpus] [--corpora 10000,100000,1000000] [--json]

samples: a greedy answer and k samples with their states over a prompt of 200 tokens; prompt: the same with k = 20 over longer
prompts (cold; the model and the texts are those of `uncertainty`); concurrency: seconds of a SeaKR run on the lab, divided by
its questions, with that many under way; corpus: processor time of a BM25 query of 6 and of 60 words, and of building the index.
Cost ~ size ^ exponent, least squares on logarithms of all rounds, with a 95% interval. A cost a + b n bends, hence the
exponent between the two largest sizes beside it.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._contenders import make, measure
from benchmarks._shared import (
    Rounds,
    arguments,
    as_json,
    fit,
    interleave,
    machine,
    numbers,
    publish,
    rounded,
    say,
    spread,
    table,
)

Series = dict[str, Rounds]
"""What is measured → rounds of size → cost."""


def continuations(sizes: Sequence[int], args: argparse.Namespace, key: str) -> Rounds:
    """Seconds of our own way where ``key`` (``k`` or ``total``) takes each size."""
    fixed = {"total": 200, "static": 50, "tokens": args.tokens, "k": 20, "device": "cpu"}
    settings = fixed | {name: getattr(args, name) for name in ("threads", "layers", "hidden")}
    ours = make(["ours, cold"], settings)["ours, cold"]
    try:
        for size in sizes:  # buffers of every size are grown once before
            setattr(ours, key, size)
            ours.run(size)

        def timed(name: str, number: int) -> float:
            setattr(ours, key, int(name))
            seconds: float = measure(ours, 100_000 * (number + 1) + int(name))["seconds"]
            return seconds

        return interleave([str(size) for size in sizes], timed, args.repeats)
    finally:
        ours.close()


def samples(args: argparse.Namespace) -> Series:
    return {"samples: seconds against k, prompt 200": continuations(args.samples, args, "k")}


def prompt(args: argparse.Namespace) -> Series:
    return {"prompt: seconds against its tokens, k = 20": continuations(args.prompts, args, "total")}


def concurrency(args: argparse.Namespace) -> Series:
    import torch

    from benchmarks._lab_runs import every, lab_questions, seakr

    torch.set_num_threads(args.threads)
    questions = lab_questions(args.questions)
    seakr(questions[:4], 4)

    def timed(name: str, _: int) -> float:
        run = seakr(every(questions, max(int(name), args.questions // 4)), int(name))
        return run.seconds / run.questions

    rounds = interleave([str(level) for level in args.concurrency], timed, args.repeats)
    return {"concurrency: seconds of a run per question": rounds}


def corpus(args: argparse.Namespace) -> Series:
    from benchmarks import retrieval

    costs = {"short_query_cpu_ms_p50": "query of 6 words", "long_query_cpu_ms_p50": "query of 60 words", "build_cpu_s": "build"}
    series: Series = {f"corpus: processor time, {name}": [] for name in costs.values()}
    with tempfile.TemporaryDirectory() as folder:
        built: dict[int, float] = {}
        for size in args.corpora:
            say(f"  building {size:,} passages")
            source, out = _places(folder, size)
            retrieval.write_corpus(source, size)
            built[size] = retrieval.in_child("build", source, out, 256)["build_cpu_s"]
        series["corpus: processor time, build"].append({str(size): built[size] for size in args.corpora})

        found: list[dict[str, dict[str, float]]] = []

        def searched(name: str, number: int) -> float:
            found.extend([{}] * (number + 1 - len(found)))
            row = retrieval.in_child("search", *_places(folder, int(name)))
            found[number] = found[number] | {name: row}
            return row["short_query_cpu_ms_p50"]

        interleave([str(size) for size in args.corpora], searched, args.repeats)
    for key in ("short_query_cpu_ms_p50", "long_query_cpu_ms_p50"):
        series[f"corpus: processor time, {costs[key]}"] = [
            {str(size): one[str(size)][key] for size in args.corpora} for one in found
        ]
    return series


def _places(folder: str, size: int) -> tuple[Path, Path]:
    return Path(folder) / f"{size}.jsonl", Path(folder) / f"{size}.index"


PARTS: Mapping[str, Callable[[argparse.Namespace], Series]] = {
    "samples": samples,
    "prompt": prompt,
    "concurrency": concurrency,
    "corpus": corpus,
}


def summary(rounds: Rounds) -> dict[str, Any]:
    costs = {int(size): [one[size] for one in rounds] for size in rounds[0]}
    fitted = fit(list(costs), list(costs.values())) if len(costs) > 1 else None
    return {"cost": {size: spread(values) for size, values in costs.items()}, "fit": fitted}


def lines(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    out: list[str] = []
    for name, result in results.items():
        first = next(iter(result["cost"].values())).median
        rows = [[f"{size:,}", str(cost), rounded(cost.median / first)] for size, cost in result["cost"].items()]
        out += [name, "", *table(["size", "cost", "x the first"], rows), f"exponent {result['fit']}", ""]
    return out


def main(argv: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, repeats=3)
    parser.add_argument("--only", default=",".join(PARTS), help="parts, separated by commas [%(default)s]")
    parser.add_argument("--samples", type=numbers, default=[1, 5, 10, 20, 40, 80], help="values of k")
    parser.add_argument("--prompts", type=numbers, default=[100, 200, 400, 800, 1600, 3200], help="tokens")
    parser.add_argument("--concurrency", type=numbers, default=[1, 4, 16, 64, 256], help="questions under way")
    parser.add_argument("--questions", type=int, default=256, help="of the lab; a quarter at low concurrency [%(default)s]")
    parser.add_argument("--corpora", type=numbers, default=[10_000, 100_000], help="numbers of passages")
    parser.add_argument("--tokens", type=int, default=40, help="new tokens [%(default)s]")
    parser.add_argument("--layers", type=int, default=8, help="of the model made on the spot [%(default)s]")
    parser.add_argument("--hidden", type=int, default=512, help="its hidden size [%(default)s]")
    args = parser.parse_args(argv)
    chosen = [name.strip() for name in args.only.split(",") if name.strip()]
    if unknown := [name for name in chosen if name not in PARTS]:
        parser.error(f"--only: no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    results: dict[str, dict[str, Any]] = {}
    for name in chosen:
        say(name)
        results |= {title: summary(rounds) for title, rounds in PARTS[name](args).items()}
    options = {key: value for key, value in vars(args).items() if key != "json"}
    document = {"benchmark": "scaling", "machine": machine(), "options": options, "results": results}
    publish(as_json(document), lines(results), args.json)


if __name__ == "__main__":
    main()

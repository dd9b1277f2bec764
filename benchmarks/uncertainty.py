"""What do twenty samples with their hidden states cost beside one greedy answer? Against libraries and llama.cpp.

    python -m benchmarks.uncertainty [--repeats 5] [--sizes 200:150,1500:1400] [--polygraph PYTHON] [--llama PROGRAM]
        [--model FILE.gguf] [--json]

A random model is made on the spot, or a GGUF file is read (`--model`), whose end token is then one that it never says. Every
contender answers the same prompts, none of which it has read before, and every continuation has the same length. Contenders are
  floor       one greedy generation by the library's `generate`: what everything is a multiple of
  ours        greedy and k samples with their states sent at once through the model protocol, and U of the states: cold, and
              warm after another prompt with the same static part
  library     greedy `generate`, then `generate(num_return_sequences=k, output_hidden_states=True)`
  polygraph   LM-Polygraph's sampling calculator and EigenScore estimator, run by --polygraph PYTHON, an interpreter in whose
              environment `lm-polygraph` is installed; without it `procedure`, a reproduction of what they do in our own words
  generate_batch  k + 1 samples by the library's `generate_batch`, which samples all its requests alike; with --batch
  llama.cpp   greedy and k samples by llama.cpp's server, run as --llama PROGRAM, without states: cold, warm after another
              prompt with the same static part, and alike: k + 1 samples of a prompt read once. It gets the weights as a GGUF
              file in the same precision, or the file of --model itself; its memory is not counted
  vllm        greedy and n = k samples by vLLM, without states, run by --vllm PYTHON; its memory is not counted
Each runs in a process of its own (on a GPU ours share one with one model, and so do the library's); rounds are interleaved,
each begun by another contender. In a round the quick ones (floor, ours) run --inner times and count with their median. Extra
memory is the peak of the process's own memory during the first full prompt above what it holds with the model loaded and used
once on a few tokens (for `ours, warm` it spans both prompts). On a CPU it is measured in further processes whose allocator
keeps nothing for later: only what is in use at a time counts; on a GPU it is what PyTorch had allocated. A contender that fails
at its first prompt, for want of memory, say, is left out by name.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._shared import (
    EXACT_MEMORY,
    ROOT,
    Rounds,
    arguments,
    as_json,
    interleave,
    machine,
    publish,
    ratios,
    rounded,
    say,
    table,
)

OURS = ("ours, cold", "ours, warm")
QUICK = ("floor", *OURS)
OTHERS = ("library", "polygraph", "procedure")
LLAMA = ("llama.cpp", "llama.cpp, warm", "llama.cpp, alike")
# What issue 3 asks for, for 40 new tokens and k = 20: prompt → what → limit.
AT_MOST = {1500: {"ours, cold": 1.7, "ours, warm": 1.3}, 200: {"ours, cold": 2.0, "ours, warm": 2.0}}
FASTER = {1500: 15.0, 200: 3.5}
MEMORY_SHARE = 0.05
# What issue 41 asks for: the time of ours as a share of llama.cpp's in the same state.
LLAMA_SHARE = 0.8


@dataclass
class Worker:
    """Contenders in a process, which begins by saying what they are."""

    process: subprocess.Popen[str]

    @classmethod
    def start(
        cls, names: Sequence[str], settings: Mapping[str, Any], python: str, environment: Mapping[str, str] | None = None
    ) -> Worker:
        command = [python, "-m", "benchmarks._contenders", json.dumps(names), json.dumps(settings)]
        inherited = os.environ | (environment or {})
        pipe = subprocess.PIPE
        return cls(subprocess.Popen(command, cwd=ROOT, env=inherited, stdin=pipe, stdout=pipe, text=True))

    def ask(self, name: str, do: str, number: int) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"name": name, "do": do, "number": number}) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"a contender ended with {self.process.wait()}; what it said is above")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        self.process.communicate()


@contextmanager
def working(names: Sequence[str], settings: Mapping[str, Any], python: str, **environment: str) -> Iterator[Worker]:
    worker = Worker.start(names, settings, python, environment)
    try:
        yield worker
    finally:
        worker.close()


def measure(total: int, static: int, args: argparse.Namespace) -> dict[str, Any]:
    """Everything about one size of prompt."""
    settings = {key: getattr(args, key) for key in ("layers", "hidden", "llama3", "device", "threads", "tokens", "k")}
    settings |= {"total": total, "static": static, "precision": args.precision, "llama": args.llama}
    settings |= opened(args.model)
    pythons = dict.fromkeys((*QUICK, "library"), sys.executable)
    pythons |= {"polygraph": args.polygraph} if args.polygraph else {"procedure": sys.executable}
    pythons |= {"generate_batch": sys.executable} if args.batch else {}
    pythons |= dict.fromkeys(LLAMA, sys.executable) if args.llama else {}
    pythons |= {"vllm": args.vllm} if args.vllm else {}
    pythons = {name: python for name, python in pythons.items() if name not in args.without}
    expected = {name: 1 if name == "floor" else args.k + (name not in ("polygraph", "procedure")) for name in pythons}
    left_out: dict[str, str] = {}

    def asked(worker: Worker, name: str, do: str, number: int) -> dict[str, Any]:
        answer = worker.ask(name, do, number)
        if "failed" in answer:
            if name in QUICK or number:
                raise SystemExit(f"{name} failed: {answer['failed']}")
            say(f"prompt of {total} tokens: {name} is left out. {answer['failed']}")
            left_out[name] = answer["failed"]
        elif answer["lengths"] != [args.tokens] * expected[name]:
            raise SystemExit(f"{name} generated {answer['lengths']} tokens, expected {expected[name]} times {args.tokens}")
        return answer

    memory: dict[str, float] = {}

    def measure_memory(worker: Worker, name: str) -> None:
        if "extra_mb" in (answer := asked(worker, name, "memory", 0)):
            memory[name] = float(answer["extra_mb"])
            say(f"prompt of {total} tokens: {name} takes {rounded(memory[name])} MB")

    # vLLM takes a share of the card's memory at once, whatever it needs; llama.cpp's is a server's.
    weighed = [name for name in pythons if name not in ("vllm", *LLAMA)] if args.memory else []
    on_card = args.device != "cpu"
    for name in () if on_card else weighed:
        with working([name], settings, pythons[name], **EXACT_MEMORY) as worker:
            worker.answer()
            measure_memory(worker, name)
    with ExitStack() as stack:
        say(f"prompt of {total} tokens: starting {', '.join(pythons)}")
        together = [
            (names, stack.enter_context(working(names, settings, pythons[names[0]])))
            for names in groups(list(pythons), on_card)
        ]
        workers = {name: worker for names, worker in together for name in names}
        started = [worker.answer() for _, worker in together]
        for name in weighed if on_card else ():
            measure_memory(workers[name], name)
        for name in pythons:
            if name not in left_out:
                asked(workers[name], name, "time", 0)  # warms it up
        names = [name for name in pythons if name not in left_out]
        processors: Rounds = []

        def timed(name: str, number: int) -> float:
            inner = args.inner if name in QUICK else 1
            answers = [asked(workers[name], name, "time", 1 + number * args.inner + turn) for turn in range(inner)]
            if len(processors) == number:
                processors.append({})
            processors[number][name] = statistics.median(answer["cpu_seconds"] for answer in answers)
            return float(statistics.median(answer["seconds"] for answer in answers))

        rounds = interleave(names, timed, args.repeats)
        return {
            "prompt": total,
            "static": static,
            "about": {name: about for one in started for name, about in one["about"].items()},
            "left_out": left_out,
            "parameters": started[0]["parameters"],
            "seconds": rounds,
            "cpu_seconds": processors,
            "extra_mb": memory,
            **compare(rounds, processors, memory, total if (args.k, args.tokens) == (20, 40) else 0),
        }


def opened(file: str | None) -> dict[str, str]:
    """The settings by which contenders find a model: the GGUF file, and the folder that Gnothi keeps of it."""
    if file is None:
        return {}
    from gnothi.models.gguf import unpacked

    return {"gguf": file, "folder": str(unpacked(Path(file), file))}


def groups(names: Sequence[str], on_card: bool) -> list[list[str]]:
    """Who shares a process: the ways of asking one server of llama.cpp. On a card a large model does not fit as often as there
    are contenders; ours leave hooks in theirs, which would slow the library."""
    shared = [["floor", "library", "procedure"], list(OURS), list(LLAMA)] if on_card else [list(LLAMA)]
    together = [[name for name in group if name in names] for group in shared]
    alone = [[name] for name in names if not any(name in group for group in shared)]
    return [group for group in (*together, *alone) if group]


def compare(rounds: Rounds, processors: Rounds, memory: Mapping[str, float], total: int) -> dict[str, Any]:
    """Ratios of one size, and what the issue asks of them where it names this size (``total``)."""
    names = list(rounds[0])
    multiples = {name: ratios(rounds, name, "floor") for name in names}
    faster = {
        rival: {name: ratios(rounds, rival, name) for name in OURS if name in names}
        for rival in (*OTHERS, "generate_batch", *LLAMA, "vllm")
        if rival in names
    }
    share = {name: memory[name] / memory["library"] for name in OURS if {name, "library"} <= memory.keys()}
    targets: dict[str, bool] = {}
    for name, limit in AT_MOST.get(total, {}).items():
        if name in names:
            targets[f"{name}: at most {limit} x the floor"] = multiples[name].median <= limit
        if name in faster.get("library", {}):
            least = FASTER[total]
            targets[f"{name}: at least {least} x faster than the library"] = faster["library"][name].median >= least
        if total == 1500 and name in share:
            targets[f"{name}: at most {MEMORY_SHARE:.0%} of the library's memory"] = share[name] <= MEMORY_SHARE
    for name, rival in (("ours, cold", LLAMA[0]), ("ours, warm", LLAMA[1]), ("ours, cold", LLAMA[2])):
        if total and {name, rival} <= set(names):
            targets[f"{name}: at most {LLAMA_SHARE} of the time of {rival}"] = ratios(rounds, name, rival).median <= LLAMA_SHARE
    return {
        "multiples_of_floor": multiples,
        "cpu_multiples_of_floor": {name: ratios(processors, name, "floor") for name in names},
        "faster_than": faster,
        "memory_share_of_library": share,
        "targets_met": targets,
    }


def lines(results: Sequence[Mapping[str, Any]], args: argparse.Namespace) -> list[str]:
    size = f"{results[0]['parameters'] / 1e6:.1f} M parameters in {args.precision}"
    out = [
        f"greedy + {args.k} samples with states, {args.tokens} new tokens; {size} on {args.device}, "
        f"{args.threads} threads; medians of {args.repeats} interleaved rounds (least - greatest)"
    ]
    for result in results:
        out += ["", f"prompt of {result['prompt']} tokens, {result['static']} of them static", ""]
        rows = []
        for name, multiple in result["multiples_of_floor"].items():
            seconds = statistics.median(one[name] for one in result["seconds"])
            faster = [str(by[name]) if name in by else "" for by in result["faster_than"].values()]
            cpu = rounded(result["cpu_multiples_of_floor"][name].median)
            extra = [rounded(result["extra_mb"].get(name, math.nan))] if args.memory else []
            rows.append([name, rounded(seconds), str(multiple), cpu, *faster, *extra])
        rivals = [f"faster than {name}" for name in result["faster_than"]]
        out += table(["", "seconds", "x floor", "x floor, CPU time", *rivals, *(["extra MB"] if args.memory else [])], rows)
        shares = ", ".join(f"{name} {share:.1%}" for name, share in result["memory_share_of_library"].items())
        out += ["", f"memory as a share of the library's: {shares}"] if shares else []
        out += [f"{name} is left out: {reason}" for name, reason in result["left_out"].items()]
        out += [f"{'met    ' if met else 'NOT MET'} {target}" for target, met in result["targets_met"].items()]
    return [*out, "", *(f"{name}: {about}" for name, about in results[0]["about"].items())]


def main(argv: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, repeats=5)
    parser.add_argument("--sizes", default="200:150,1500:1400", help="TOKENS:STATIC of prompts [%(default)s]")
    parser.add_argument("--tokens", type=int, default=40, help="new tokens of every continuation [%(default)s]")
    parser.add_argument("--k", type=int, default=20, help="samples [%(default)s]")
    parser.add_argument("--inner", type=int, default=3, help="runs of the quick contenders in a round [%(default)s]")
    parser.add_argument("--layers", type=int, default=8, help="of the model made on the spot [%(default)s]")
    parser.add_argument("--hidden", type=int, default=512, help="its hidden size, a multiple of 64 [%(default)s]")
    parser.add_argument("--llama3", action="store_true", help="Llama 3's proportions and vocabulary: 8.03 B at 32 x 4096")
    parser.add_argument("--device", default="cpu", help="cpu (float32) or cuda (bfloat16) [%(default)s]")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), help="of the weights on a CPU [float32]")
    parser.add_argument("--model", metavar="FILE", help="a GGUF file of a Llama in place of the model made on the spot")
    optional = (OURS[1], *OTHERS, *LLAMA)
    parser.add_argument("--without", action="append", default=[], choices=optional, help="leave one out (repeatable)")
    parser.add_argument("--polygraph", metavar="PYTHON", help="an interpreter that can import lm_polygraph")
    parser.add_argument("--batch", action="store_true", help="the library's generate_batch, too")
    parser.add_argument("--llama", metavar="PROGRAM", help="llama.cpp's llama-server, and flags of its own")
    parser.add_argument("--no-memory", dest="memory", action="store_false", help="measure time alone")
    parser.add_argument("--vllm", metavar="PYTHON", help="an interpreter that can import vllm")
    args = parser.parse_args(argv)
    if args.device != "cpu" and (args.batch or args.llama or args.model or args.precision):
        parser.error("--batch, --llama, --model and --precision are for a CPU")
    args.precision = args.precision or ("float32" if args.device == "cpu" else "bfloat16")
    sizes = [(int(total), int(static)) for total, _, static in (size.partition(":") for size in args.sizes.split(","))]
    results = [measure(total, static, args) for total, static in sizes]
    options = {key: value for key, value in vars(args).items() if key not in ("json", "polygraph", "vllm", "llama", "model")}
    document = {"benchmark": "uncertainty", "machine": machine(), "options": options, "results": results}
    publish(as_json(document), lines(results, args), args.json)


if __name__ == "__main__":
    main()

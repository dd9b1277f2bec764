"""Where does the time go? Shares of the engine's and of the methods' thread, by what they are doing.

    python -m benchmarks.where_time_goes [--only prompt200,prompt1500,lab] [--questions 64] [--json]

prompt200, prompt1500: a greedy answer and 20 samples with their states, cold, on the model of `uncertainty`, --repeats times.
lab: SeaKR over lab questions, --questions of them at once. Functions are wrapped from outside while it runs; a wrapped
function's time is its own alone, without that of wrapped ones inside it, so that the shares of a thread add up to 100 % of
the wall time. In `lab` two threads share the interpreter: while one runs Python the other waits, which counts where it waits.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from benchmarks._shared import arguments, as_json, machine, publish, say, table

ENGINE, METHODS = "engine", "methods"
# (thread, module, attribute, what its own time is spent on). Inside "prefill" everything is counted as part of it.
PLACES = (
    (ENGINE, "torch.nn", "Linear.forward", "linear layers"),
    (ENGINE, "gnothi.models.engine.packed", "Packed.forward", "linear layers"),
    (ENGINE, "gnothi.models.engine.passes", "Network.prefill", "prefill"),
    (ENGINE, "gnothi.models.engine.passes", "Network.forward", "the library's other layers and its Python"),
    (ENGINE, "gnothi.models.engine.forked", "Forked._read_rest", "prefill"),
    (ENGINE, "gnothi.models.engine.attention", "_shared", "attention over prompts"),
    (ENGINE, "gnothi.models.engine.continuations", "Continuations.part", "attention over own tokens"),
    (ENGINE, "gnothi.models.engine.attention", "Fed.part", "attention over own tokens"),
    (ENGINE, "gnothi.models.engine.continuations", "Continuations.receive", "keeping keys and values"),
    (ENGINE, "gnothi.models.engine.forked", "Forked.keep", "keeping keys and values"),
    (ENGINE, "gnothi.models.engine.prompts", "SuffixPool.append", "keeping keys and values"),
    (ENGINE, "gnothi.models.engine.prefixes", "Prefixes.add", "keeping keys and values"),
    (ENGINE, "gnothi.models.engine.prefixes", "Prefixes.match", "keeping keys and values"),
    (ENGINE, "gnothi.models.engine.forked", "lay_out", "laying rows out"),
    (ENGINE, "gnothi.models.engine.forked", "Forked.step", "laying rows out"),
    (ENGINE, "gnothi.models.engine.engine", "regroup", "rows that come and go"),
    (ENGINE, "gnothi.models.engine.engine", "choose", "choosing tokens"),
    (ENGINE, "gnothi.models.engine.engine", "Rows.append", "rows that come and go"),
    (ENGINE, "gnothi.models.engine.engine", "Rows.keep", "rows that come and go"),
    (ENGINE, "gnothi.models.engine.engine", "Engine._next_members", "rows that come and go"),
    (ENGINE, "gnothi.models.engine.engine", "Engine._look", "text: stop strings"),
    (ENGINE, "gnothi.models.engine.engine", "Engine._conclude", "text: finished rows"),
    (ENGINE, "gnothi.models.transformers", "TransformersBackend._receive", "text: rendering and tokenising"),
    (ENGINE, "gnothi.models.transformers", "TransformersBackend._score", "scoring continuations"),
    (ENGINE, "gnothi.models.transformers", "TransformersBackend.serve", "the engine's loop"),
    (ENGINE, "gnothi.concurrency", "Inbox.wait", "waiting for requests"),
    (METHODS, "selectors", "DefaultSelector.select", "waiting for model and search"),
    (METHODS, "gnothi.signals.kinds.gram", "gram_uncertainty", "U of the states"),
    (METHODS, "gnothi.models.wrappers", "derive", "seeds"),
    (METHODS, "gnothi.methods.seakr", "query_from_draft", "queries"),
    (METHODS, "gnothi.runs.folder", "RunFolder.append", "rows and events to disk"),
    ("search", "gnothi.retrieval.bm25", "BM25Index.search_blocking", "BM25"),
)
REST = {ENGINE: "the engine's loop", METHODS: "methods, wrappers and asyncio"}
MODES = {"prefill": "prefill: "}
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.thread_time}


class Clock:
    """Own time of each activity, per kind of thread."""

    def __init__(self, now: Callable[[], float] = time.perf_counter) -> None:
        self._now = now
        self.spent: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.calls: dict[str, int] = defaultdict(int)
        self._threads = threading.local()

    def enter(self, kind: str, name: str) -> None:
        stack = self._stack()
        self._charge(stack)
        prefix = stack[-1][2] if stack else ""
        stack.append((kind, prefix + name, prefix or MODES.get(name, "")))
        self.calls[prefix + name] += 1

    def leave(self) -> None:
        stack = self._stack()
        self._charge(stack)
        stack.pop()

    @property
    def walls(self) -> bool:
        return self._now is time.perf_counter

    def clear(self) -> None:
        self.spent.clear()
        self.calls.clear()

    def _stack(self) -> list[tuple[str, str, str]]:
        if not hasattr(self._threads, "stack"):
            self._threads.stack, self._threads.since = [], self._now()
        stack: list[tuple[str, str, str]] = self._threads.stack
        return stack

    def _charge(self, stack: list[tuple[str, str, str]]) -> None:
        now = self._now()
        if stack:
            kind, name, _ = stack[-1]
            self.spent[kind][name] += now - self._threads.since
        self._threads.since = now

    def wrapped(self, function: Callable[..., Any], kind: str, name: str) -> Callable[..., Any]:
        def timed(*given: Any, **options: Any) -> Any:
            self.enter(kind, name)
            try:
                return function(*given, **options)
            finally:
                self.leave()

        return timed


@contextmanager
def wrapping(clock: Clock) -> Iterator[list[str]]:
    """Every place wrapped; yields those that do not exist (any more)."""
    undo: list[tuple[Any, str, Any]] = []
    missing = []
    try:
        for kind, module, path, name in PLACES:
            *owners, last = path.split(".")
            try:
                owner: Any = importlib.import_module(module)
                for part in owners:
                    owner = getattr(owner, part)
                function = getattr(owner, last)
            except (ImportError, AttributeError):
                missing.append(f"{module}.{path}")
                continue
            inherited = last not in vars(owner)
            undo.append((owner, last, None if inherited else function))
            setattr(owner, last, clock.wrapped(function, kind, name))
        yield missing
    finally:
        for owner, last, function in undo:
            if function is None:
                delattr(owner, last)
            else:
                setattr(owner, last, function)


@contextmanager
def attention_wrapped(clock: Clock) -> Iterator[None]:
    """The hook that the library calls for attention (in a prefill the library's own works inside it), and what a model that is
    opened meanwhile registers."""
    from transformers import AttentionInterface

    from gnothi.models.engine import forked
    from gnothi.models.engine.attention import IMPLEMENTATION, attend

    timed = clock.wrapped(attend, ENGINE, "attention")
    vars(forked)["attend"] = timed
    AttentionInterface.register(IMPLEMENTATION, timed)
    try:
        yield
    finally:
        vars(forked)["attend"] = attend
        AttentionInterface.register(IMPLEMENTATION, attend)


def prompt(total: int, static: int, given: argparse.Namespace) -> dict[str, Any]:
    from benchmarks._contenders import make

    settings = {"total": total, "static": static, "tokens": given.tokens, "k": given.k, "device": "cpu"}
    settings |= {name: getattr(given, name) for name in ("threads", "layers", "hidden")}
    ours, clock = make(["ours, cold"], settings)["ours, cold"], Clock(CLOCKS[given.clock])
    try:
        ours.run(0)
        with wrapping(clock) as missing, attention_wrapped(clock):
            walls = []
            for number in range(1, given.repeats + 1):
                began = time.perf_counter()
                ours.run(number)
                walls.append(time.perf_counter() - began)
            found = result(clock, sum(walls), {ENGINE: sum(walls)}, missing)
    finally:
        ours.close()
    return found | {"seconds_per_answer": statistics.fmean(walls)}


def lab(given: argparse.Namespace) -> dict[str, Any]:
    import torch

    from benchmarks._lab_runs import lab_questions, seakr

    torch.set_num_threads(given.threads)
    questions = lab_questions(given.questions)
    seakr(questions[:8], 8)
    clock = Clock(CLOCKS[given.clock])
    with wrapping(clock) as missing, attention_wrapped(clock):
        run = seakr(questions, given.questions, on_answer=lambda answered: None if answered else clock.clear())
        found = result(clock, run.seconds, {ENGINE: run.seconds, METHODS: run.seconds}, missing)
    return found | {
        "questions_per_second": run.per_second,
        "cpu_seconds": run.cpu_seconds,
        "rows_per_step": run.rows_per_step(),
        "steps": run.steps[-1],
    }


def result(clock: Clock, wall: float, covered: dict[str, float], missing: Sequence[str]) -> dict[str, Any]:
    """Shares of each thread's time. On the wall, what no place covers of the threads in ``covered`` (their seconds) is the
    rest; processor time is shared among the places."""
    shares: dict[str, dict[str, float]] = {}
    for kind, spent in clock.spent.items():
        of = dict(spent)
        if clock.walls and kind in covered:
            of[REST[kind]] = of.get(REST[kind], 0.0) + covered[kind] - sum(of.values())
        total = wall if clock.walls else sum(of.values())
        shares[kind] = {name: seconds / total for name, seconds in sorted(of.items(), key=lambda item: -item[1])}
    return {"wall_seconds": wall, "shares": shares, "calls": dict(clock.calls), "not_found": list(missing)}


def lines(results: dict[str, dict[str, Any]]) -> list[str]:
    out = []
    for name, found in results.items():
        facts = [f"{key.replace('_', ' ')} {value:.4g}" for key, value in found.items() if isinstance(value, float | int)]
        out += [f"{name}: {', '.join(facts)}", ""]
        for kind, shares in found["shares"].items():
            rows = [[what, f"{share:.1%}", f"{found['calls'].get(what, 0):,}"] for what, share in shares.items()]
            out += table([f"thread: {kind}", "share", "calls"], [*rows, ["sum", f"{sum(shares.values()):.1%}", ""]])
            out.append("")
        if found["not_found"]:
            out += [f"not found, counted with what calls them: {', '.join(found['not_found'])}", ""]
    return out


def main(argv: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, repeats=5)
    parser.add_argument("--only", default="prompt200,prompt1500,lab", help="parts, separated by commas [%(default)s]")
    parser.add_argument("--questions", type=int, default=64, help="of the lab, all at once [%(default)s]")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: processor time of the thread, for busy machines [%(default)s]"
    )
    parser.add_argument("--tokens", type=int, default=40, help="new tokens of the prompts' answers [%(default)s]")
    parser.add_argument("--k", type=int, default=20, help="samples of the prompts' answers [%(default)s]")
    parser.add_argument("--layers", type=int, default=8, help="of the model made on the spot [%(default)s]")
    parser.add_argument("--hidden", type=int, default=512, help="its hidden size [%(default)s]")
    given = parser.parse_args(argv)
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "prompt200": lambda: prompt(200, 150, given),
        "prompt1500": lambda: prompt(1500, 1400, given),
        "lab": lambda: lab(given),
    }
    chosen = [name.strip() for name in given.only.split(",") if name.strip()]
    if unknown := [name for name in chosen if name not in parts]:
        parser.error(f"--only: no part {', '.join(unknown)}; there are {', '.join(parts)}")
    results = {}
    for name in chosen:
        say(name)
        results[name] = parts[name]()
    options = {key: value for key, value in vars(given).items() if key != "json"}
    document = {"benchmark": "where_time_goes", "machine": machine(), "options": options, "results": results}
    publish(as_json(document), lines(results), given.json)


if __name__ == "__main__":
    main()

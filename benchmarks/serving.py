"""What does a server cost? SeaKR on the lab through `gnothi serve`, against `gnothi eval` in one process.

    python -m benchmarks.serving [--questions 500] [--clients 64] [--few 8] [--requests 5000] [--threads 2] [--repeats 3]

The server is a process of its own, asked by so many clients at once, whole answers over kept connections; the evaluation runner
answers the same questions with as many under way (and with as many as `gnothi eval` takes by itself). Then how long a stream
takes to its first event, with few clients against one alone; and the server's own memory over many requests, of which the first
fifth fills what is kept on purpose. Ratios are of one round, so that what slows a whole round cancels out. Needs Linux.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks._lab_runs import every, lab_questions, seakr
from benchmarks._shared import (
    Rounds,
    arguments,
    as_json,
    interleave,
    machine,
    publish,
    ratios,
    rounded,
    say,
    slope,
    spread,
    table,
)
from gnothi.types import Question

THROUGHPUT, FIRST_EVENT, GROWTH_MB = 0.85, 2.0, 2.0
OWN_CONCURRENCY = 256
"""As many questions as `gnothi eval lab` has under way unless told otherwise."""
PATH = "/v1/chat/completions"


@contextlib.contextmanager
def server(threads: int, overrides: Sequence[str]) -> Iterator[tuple[str, int]]:
    """A server with a model opened anew: its address and its process."""
    settings = [part for one in ("server.timeout=600", "server.waiting=1000", *overrides) for part in ("--set", one)]
    command = [sys.executable, "-m", "gnothi", "serve", "--method", "seakr", "--port", "0", *settings]
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        try:
            for line in process.stderr:
                if "/v1 answers as" in line:
                    break
            else:
                raise SystemExit("the server did not start")
            reading = subprocess.Popen(
                ["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL
            )  # its log must not fill the pipe
            yield line.partition("/v1")[0], process.pid
            reading.terminate()
        finally:
            process.terminate()


def body(question: Question, stream: bool = False) -> dict[str, Any]:
    return {"model": "gnothi/seakr", "stream": stream, "messages": [{"role": "user", "content": question.text}]}


async def ask_all(url: str, questions: Sequence[Question], clients: int, each: Any = None) -> float:
    """Seconds until all are answered; ``each`` is told how many are. Raises SystemExit when one fails."""
    import httpx2

    waiting = iter(questions)
    answered = 0

    async def client(http: httpx2.AsyncClient) -> None:
        nonlocal answered
        for question in waiting:
            response = await http.post(PATH, json=body(question))
            if response.status_code != 200:
                raise SystemExit(f"status {response.status_code}: {response.text[:200]}")
            answered += 1
            if each is not None:
                each(answered)

    limits = httpx2.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx2.AsyncClient(base_url=url, timeout=600, limits=limits) as http:
        began = time.perf_counter()
        await asyncio.gather(*(client(http) for _ in range(clients)))
        return time.perf_counter() - began


async def first_events(url: str, questions: Sequence[Question], clients: int) -> tuple[float, float]:
    """Median seconds of a stream to its first chunk, and to the first decision."""
    import httpx2

    waiting, opened, decided = iter(questions), list[float](), list[float]()

    async def client(http: httpx2.AsyncClient) -> None:
        for question in waiting:
            began, told = time.perf_counter(), [opened, decided]
            async with http.stream("POST", PATH, json=body(question, stream=True)) as stream:
                async for line in stream.aiter_lines():
                    if told and line.startswith("data: {") and (told[0] is opened or "gnothi" in json.loads(line[6:])):
                        told.pop(0).append(time.perf_counter() - began)

    async with httpx2.AsyncClient(base_url=url, timeout=600) as http:
        await asyncio.gather(*(client(http) for _ in range(clients)))
    return statistics.median(opened), statistics.median(decided)


def throughput(args: argparse.Namespace) -> dict[str, Any]:
    import torch

    torch.set_num_threads(args.threads)
    questions = lab_questions(args.questions)
    seakr(questions[:8], 8, args.overrides)
    served, evaluated, alike = f"{args.clients} clients", "eval", f"eval, {args.clients} under way"

    def timed(name: str, _: int) -> float:
        if name != served:
            return seakr(questions, OWN_CONCURRENCY if name == evaluated else args.clients, args.overrides).seconds
        with server(args.threads, args.overrides) as (url, _pid):
            asyncio.run(ask_all(url, questions[:8], 8))
            return asyncio.run(ask_all(url, questions, args.clients))

    rounds = interleave([served, evaluated, alike], timed, args.repeats)
    return {
        "per_second": {name: spread(len(questions) / one[name] for one in rounds) for name in rounds[0]},
        "of_eval": ratios(rounds, evaluated, served),
        "of_eval_with_as_many": ratios(rounds, alike, served),
    }


def streams(args: argparse.Namespace) -> dict[str, Any]:
    some = every(lab_questions(args.questions), 10 * args.few)
    alone, few = "alone", f"{args.few} clients"
    with server(args.threads, args.overrides) as (url, _):
        asyncio.run(ask_all(url, some[:8], 8))
        opened: Rounds = [{} for _ in range(args.repeats)]

        def timed(name: str, place: int) -> float:
            opened[place][name], decided = asyncio.run(first_events(url, some, 1 if name == alone else args.few))
            return decided

        decided = interleave([alone, few], timed, args.repeats)
    return {
        what: {
            "seconds": {name: spread(one[name] for one in rounds) for name in rounds[0]},
            "of_alone": ratios(rounds, few, alone),
        }
        for what, rounds in (("chunk", opened), ("decision", decided))
    }


def memory(args: argparse.Namespace) -> dict[str, Any]:
    """With little room for the beginnings of prompts, so that it is full soon: what grows afterwards would never end."""
    figures: list[tuple[int, float]] = []
    with server(args.threads, ["model.prefix_cache_mb=16", *args.overrides]) as (url, pid):

        def note(answered: int) -> None:
            if answered % max(1, args.requests // 20) == 0:
                status = Path(f"/proc/{pid}/status").read_text()
                figures.append((answered, int(status.split("RssAnon:")[1].split()[0]) / 1024))
                say(f"  {answered} of {args.requests}: {figures[-1][1]:.0f} MB")

        asyncio.run(ask_all(url, lab_questions(args.requests)[: args.requests], args.clients, note))
    return {"mb": figures, "per_1000": growth(figures)}


def growth(figures: Sequence[tuple[int, float]]) -> Any:
    """MB per 1,000 requests after the first fifth; None where there are too few points."""
    later = [(answered / 1000, mb) for answered, mb in figures if answered > figures[-1][0] / 5]
    return slope(*map(list, zip(*later, strict=True))) if len(later) >= 3 else None


def targets(figures: dict[str, Any]) -> dict[str, bool]:
    """What issue 18 asks for."""
    per = figures["memory"]["per_1000"]
    return {
        f"at least {THROUGHPUT} of `gnothi eval`'s questions a second": figures["throughput"]["of_eval"].median >= THROUGHPUT,
        **{
            f"first {what} of a stream under {FIRST_EVENT:g} x that of a lone one": one["of_alone"].median < FIRST_EVENT
            for what, one in figures["streams"].items()
        },
        f"memory flat: under {GROWTH_MB:g} MB per 1,000 requests": per is not None and per.median < GROWTH_MB,
    }


def lines(figures: dict[str, Any], args: argparse.Namespace) -> list[str]:
    speed, per = figures["throughput"], figures["memory"]["per_1000"]
    rows = [[name, str(one)] for name, one in speed["per_second"].items()]
    first, last = figures["memory"]["mb"][0], figures["memory"]["mb"][-1]
    return [
        f"SeaKR on the lab, {args.questions} questions, {args.threads} threads; medians of {args.repeats} rounds",
        *table(["", "questions a second"], rows),
        f"of eval's: {speed['of_eval']}; of eval's with as many under way: {speed['of_eval_with_as_many']}",
        *(
            f"first {what}: {', '.join(f'{name} {one} s' for name, one in begun['seconds'].items())}; ratio {begun['of_alone']}"
            for what, begun in figures["streams"].items()
        ),
        f"memory: {rounded(first[1])} MB after {first[0]} requests, {rounded(last[1])} MB after {last[0]}"
        + (f"; {per.median:+.2f} MB per 1,000 [{per.low:+.2f}, {per.high:+.2f}]" if per else ""),
        "",
        *(f"{'met    ' if met else 'NOT MET'} {target}" for target, met in targets(figures).items()),
    ]


def main(argv: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__, repeats=3)
    parser.add_argument("--questions", type=int, default=500, help="of the lab's mixed questions [%(default)s]")
    parser.add_argument("--clients", type=int, default=64, help="that ask at once [%(default)s]")
    parser.add_argument("--few", type=int, default=8, help="clients of streams [%(default)s]")
    parser.add_argument("--requests", type=int, default=5000, help="over which memory is looked at [%(default)s]")
    parser.add_argument(
        "--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE", help="as of `gnothi eval` (repeat)"
    )
    args = parser.parse_args(argv)
    found = {"throughput": throughput(args), "streams": streams(args), "memory": memory(args)}
    options = {key: value for key, value in vars(args).items() if key != "json"}
    document = {"options": options, "machine": machine(), **found, "targets_met": targets(found)}
    publish(as_json(document), lines(found, args), args.json)


if __name__ == "__main__":
    main()

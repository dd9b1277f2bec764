"""A server of models that faults: `gnothi eval` over it loses no row, doubles none, and spends no more than it may."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from benchmarks._faults_fuzz import seeds
from benchmarks._faults_killed import rows_of
from benchmarks._faults_trial import Outcome, call
from tests.models.openai_server import FAULTS, Server, serving

_NAME = "told"
_REACHES = "runs: socket.connect"
_STACK = ExitStack()


@dataclass(slots=True)
class Reported:
    """Answers by what it is asked alone; its choices come in any order. ``charged``: tokens of all that it did."""

    chance: Random = field(default_factory=Random)
    charged: int = 0

    async def answer(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if path == "/v1/models":
            return {"object": "list", "data": [{"id": _NAME, "object": "model", "owned_by": "somebody"}]}
        if not path.endswith("/completions"):  # where other servers say how much they read
            return {"error": {"message": "not found"}}
        asked = str(body.get("prompt") or body["messages"])
        choices = []
        for row in range(body.get("n", 1)):
            text = f"So the answer is {hashlib.sha1(f'{asked} {row}'.encode()).hexdigest()[:6]}."
            choice = {"index": row, "finish_reason": "stop", "logprobs": None}
            choices.append(
                choice | ({"message": {"role": "assistant", "content": text}} if "messages" in body else {"text": text})
            )
        self.chance.shuffle(choices)
        read, written = len(asked) // 4, 6 * len(choices)
        self.charged += read + written
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        return {"id": "x", "object": "chat.completion", "created": 0, "model": _NAME, "choices": choices, "usage": usage}


_TOLD = Reported()


@dataclass
class Faulty(Server):
    """Some replies come twice on one connection."""

    twice: float = 0.0

    async def _respond(self, *given: Any) -> bool:
        kept = await super()._respond(*given)
        if kept and given[0] != "/v1/models" and _TOLD.chance.random() < self.twice:
            writer: asyncio.StreamWriter = given[3]
            writer.write(b'HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{"choices": []}')
            self.faults.append("json")
        return kept


_SERVER = Faulty(_TOLD)  # type: ignore[arg-type]
_EXPECTED: list[Any] = []
KINDS = ("twice",)
"""What ``--only`` may name."""


def prepare(folder: Path, only: str) -> None:  # noqa: ARG001
    from gnothi import retrying

    vars(retrying)["FIRST_WAIT"] = 0.002
    os.environ["OPENAI_API_KEY"] = "sk-nobody-0123456789"
    seeds(folder / "seeds", heavy=False)
    _STACK.enter_context(serving(_SERVER))
    _fresh(folder)
    if (found := _run()).code:
        raise RuntimeError(f"the server without faults: {found}")
    _EXPECTED.append(rows_of(Path("made")))


def _fresh(folder: Path) -> None:
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    (work / "sets").mkdir(parents=True)
    shutil.copy(folder / "seeds" / "sets" / "plain.jsonl", work / "sets")
    shutil.copytree(folder / "seeds" / "index", work / "index")
    os.chdir(work)


def _run(*more: str) -> Outcome:
    given = ("--model", f"openai:{_NAME}", "--set", f"model.base_url={_SERVER.url}", "--index", "index")
    settings = ("model.cache=off", "model.timeout=1.0", "model.price_in=1", "model.price_out=1")
    sets = [word for one in settings for word in ("--set", one)]
    found = call(("eval", "sets/plain.jsonl", "--method", "direct,rag,self_consistency", *given, *sets, *more, "--out", "made"))
    said = {_REACHES, *(["exit code 1 without a word"] if "failed" in found.out else [])}  # the summary says it, on stdout
    problems = tuple(one for one in found.problems if not one.startswith(tuple(said)))
    if os.environ["OPENAI_API_KEY"] in found.out + found.err:
        problems += ("tells the key",)
    return Outcome(found.code, found.out, found.err, problems)


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:
    """The run under faults once or several times, some with a budget; then without faults, to its end. ``only`` "twice" adds
    replies that nobody asked for, which HTTP/1.1 cannot tell from those to the next request."""
    rng = Random(f"{seed} remote {number}")
    _fresh(folder)
    _TOLD.chance = Random(rng.random())
    share, kinds = rng.choice((0.05, 0.2, 0.4, 0.7)), rng.sample(FAULTS, rng.randint(1, len(FAULTS)))
    problems: list[str] = []
    done: list[str] = []
    injected = len(_SERVER.faults)
    for _ in range(rng.choice((1, 2, 3))):
        chance = Random(rng.random())
        most = rng.choice((None, 300, 2_000, 8_000, 20_000))
        budget = [] if most is None else rng.choice((["--max-tokens", str(most)], ["--max-cost", f"{most / 1e6:.6f}"]))
        _SERVER.fault = lambda _, chance=chance: chance.choice(kinds) if chance.random() < share else None  # type: ignore[misc]
        _SERVER.twice, before = share / 10 if only == "twice" else 0.0, _TOLD.charged
        found = _run(*budget)
        problems += found.problems
        spent = _TOLD.charged - before
        if most is not None and spent > most:
            problems.append("spends more than the budget")
        done.append(f"{share} of {len(kinds)} faults, budget {most}: exit code {found.code}")
    injected = len(_SERVER.faults) - injected
    _SERVER.fault, _SERVER.twice = lambda _: None, 0.0
    last = _run()
    problems += last.problems
    if last.code:
        problems.append(f"does not go on: exit code {last.code}")
    elif rows_of(Path("made")) != _EXPECTED[0]:
        problems.append("ends in something else than undisturbed")
    return {
        "target": "eval over a faulting server",
        "command": "eval",
        "changed": [*done, f"{injected} faults"],
        "faults": injected,
        "code": last.code,
        "problems": list(dict.fromkeys(problems)),
        "said": (last.err.strip().splitlines() or [""])[-1][:200],
    }

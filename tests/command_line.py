"""A scripted model in place of the laboratory's, so that the command line is tested without weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import click
import pytest

from gnothi import lab
from gnothi.cli import main
from gnothi.models.wrappers import Seeded, Traced
from gnothi.protocols import LanguageModel
from gnothi.session import sources
from gnothi.testing.model import Reply, Scripted
from gnothi.types import Prompt

Run = Callable[..., tuple[int, str, str]]
"""A command: its arguments; its exit code, what it wrote to standard output, and to standard error."""
Json = Callable[..., Any]
"""As ``Run``, of a command that has to succeed: the JSON that it printed."""
KNOWN, UNKNOWN = "Who wrote the known book?", "unknown"


@cache
def covered_fact() -> tuple[str, str, str]:
    """Subject, object and question of a one-hop question whose passage tells the truth."""
    for question in lab.questions(lab.world(), "one_hop", 200):
        hop = question.metadata["hops"][0]
        if hop["coverage"] == "covered":
            return hop["subject"], hop["object"], question.text
    raise AssertionError("the lab holds no covered fact")


def script(prompt: Prompt) -> Reply:
    """Sure of the known book; unsure of everything else without a passage, sure of it with the right one."""
    subject, true, _ = covered_fact()
    if prompt.question == KNOWN:
        return _concluding(prompt, "", "Ada Bram", doubt=0.0)
    if any(passage.title == subject for passage in prompt.passages):
        return _concluding(prompt, "", true, doubt=0.0)
    return _concluding(prompt, f"It has to do with {subject}. ", "nobody", doubt=5.0)


def _concluding(prompt: Prompt, reasons: str, answer: str, doubt: float) -> Reply:
    if prompt.answer_so_far.endswith("the answer is") or prompt.task.name == "answer":
        return Reply(f"{answer}.", doubt=doubt)
    said = "" if prompt.answer_so_far else reasons
    return Reply(f"{said}So the answer is {answer}.", doubt=doubt)


def stand_in(model: Scripted) -> Callable[..., LanguageModel]:
    """What takes the place of ``sources.open_model``."""

    def open_model(spec: str, settings: object = None) -> LanguageModel:  # noqa: ARG001
        return Traced(Seeded(model))

    return open_model


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    model = Scripted(script, name="lab", thresholds={"gram": -6.0})
    monkeypatch.setattr(sources, "open_model", stand_in(model))
    return model


@pytest.fixture
def gnothi(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line; gives its exit code, stdout and stderr, and checks that no traceback was shown."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main.run(arguments)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err, captured.err
        return code, captured.out, captured.err

    return run


@pytest.fixture
def gnothi_json(gnothi: Run) -> Json:
    """Runs a command line with ``--json`` and gives the one document on stdout."""

    def run(*arguments: str) -> Any:
        code, out, err = gnothi(*arguments, "--json")
        assert code == 0, err
        assert all(line.startswith("warning: ") for line in err.splitlines()), err
        return json.loads(out)

    return run


def parsed(arguments: Sequence[str]) -> None:
    """Raises where the command line has no such command, or the command does not take such options."""
    rest = list(arguments)
    taking: click.Command = main.cli
    while isinstance(taking, click.Group):
        found = taking.get_command(click.Context(taking), rest.pop(0))
        assert found is not None, arguments
        taking = found
    taking.make_context(taking.name, rest, resilient_parsing=False)

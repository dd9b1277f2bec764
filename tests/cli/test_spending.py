"""What a command says when it is stopped, and what it paid."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from gnothi.cli.running import spending, stoppable
from gnothi.cli.signals import INTERRUPTED
from gnothi.errors import BudgetSpent, TooManyFailures
from gnothi.models.remote.budget import Budget, current
from tests.messages import refused


def test_an_interruption_says_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(click.exceptions.Exit) as ended, stoppable(Path("out")):
        raise KeyboardInterrupt
    assert ended.value.exit_code == INTERRUPTED
    said = "gnothi: interrupted. What is finished is kept in out. Run the same command again to resume.\n"
    assert capsys.readouterr().err == said


def test_a_spent_budget_says_what_is_kept() -> None:
    with refused(BudgetSpent), stoppable(Path("out"), lambda: "3 answers are"):
        raise BudgetSpent("spent.")
    with refused(TooManyFailures), stoppable(Path("out")):
        raise TooManyFailures("too many.")


@pytest.mark.parametrize("err", [True, False])
def test_what_was_paid_comes_last_and_only_for_models_behind_an_api(err: bool, capsys: pytest.CaptureFixture[str]) -> None:
    budget = Budget()
    with spending(budget, True, Path("out"), err=err):
        assert current() is budget
        click.echo("the result")
    out, said = capsys.readouterr()
    charged = "charged: 0 requests, 0 prompt and 0 generated tokens\n"
    assert (out, said) == (("the result\n", charged) if err else (f"the result\n{charged}", ""))
    with spending(budget, False, Path("out"), err=err):
        pass
    with pytest.raises(BudgetSpent), spending(budget, True, Path("out"), err=err):
        raise BudgetSpent("spent.")
    assert capsys.readouterr() == ("", "")

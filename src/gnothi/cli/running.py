"""Methods asked many questions by a command: what is said meanwhile and after."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi.cli import options
from gnothi.cli.spending import say_charges, stoppable

if TYPE_CHECKING:
    from gnothi.api.evaluate import Evaluation

SOME_FAILED = 1
"""Exit code of a command that ended with questions that failed."""


@contextmanager
def evaluated(
    data: str | Path,
    methods: list[str] | None,
    out: Path,
    sources: options.Sources,
    thresholds: options.Thresholds,
    asking: options.Asking,
    *,
    as_json: bool,
    **more: Any,
) -> Iterator[Evaluation]:
    """What ``gnothi.evaluate`` returns, with progress told meanwhile, and costs at the end. ``as_json``: standard output is for
    a program."""
    import gnothi
    from gnothi.cli.progress import ProgressWatch

    watch = ProgressWatch()
    given = {**sources.arguments(thresholds), "config": sources.config, **asdict(asking), **more}
    with stoppable(out, lambda: watch.kept):
        with watch:
            evaluation = gnothi.evaluate(data, methods, out, budget=sources.budget, watch=watch, **given)
        yield evaluation
    say_charges(watch.budget, err=as_json)

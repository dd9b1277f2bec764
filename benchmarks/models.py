"""Every causal family of the installed transformers that can be made tiny, beside plain passes of it (make test-models).

Greedy text, log-probabilities, samples alone and in company, hidden states at both sites and U, scores of continuations,
prompts that begin alike, prompts read in pieces and past windows: each within 1e-3 of a pass over the whole text without a
cache, or refused in a sentence of Gnothi's. Ends with 1 where a result is wrong or an error is a library's own.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, cast

from benchmarks._shared import ROOT, arguments, publish, say, table

if TYPE_CHECKING:
    from benchmarks._models_compared import Outcome

PAGE = ROOT / "docs" / "results" / "models-compared.md"
_MARK = "<!-- table: python -m benchmarks models --page -->"


def main() -> int:
    parser = arguments(__doc__, repeats=1, threads=1)
    parser.add_argument("--only", nargs="*", default=[], help="these families or variants [all]")
    parser.add_argument("--page", action="store_true", help="write the table into the page of the docs")
    options = parser.parse_args()
    outcomes = run(options.only, options.threads)
    lines = tables(outcomes)
    publish({"outcomes": [asdict(one) | {"verdict": one.verdict} for one in outcomes]}, lines, options.json)
    if options.page:
        write_page(PAGE, lines)
    return int(any(one.verdict in ("wrong", "failed") for one in outcomes))


def run(only: Sequence[str] = (), threads: int = 1, *, timed: bool = True) -> list[Outcome]:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    warnings.simplefilter("ignore")
    import torch
    import transformers

    from benchmarks import _models_tiny as tiny
    from benchmarks._models_compared import compare

    torch.set_num_threads(threads)
    cast("Any", transformers.logging).set_verbosity_error()
    logging.getLogger("gnothi.opening").setLevel(logging.ERROR)
    found = []
    for name in only or tiny.names():
        outcome = compare(name, timed=timed)
        worst = max(outcome.apart.values(), default=0.0)
        say(f"{name:32} {outcome.verdict:9} {outcome.path:9} {worst:.0e} {outcome.failed or outcome.not_made or ''}")
        found.append(outcome)
    return found


def tables(outcomes: Sequence[Outcome]) -> list[str]:
    """What was compared, what was refused as a whole, what could not be made."""
    counts = Counter((one.verdict, one.path) for one in outcomes)
    made = [one for one in outcomes if not one.not_made]
    compared = [one for one in made if "opening" not in one.refused | one.failed]
    total = ", ".join(f"{count} {verdict}{f' ({path})' if path else ''}" for (verdict, path), count in sorted(counts.items()))
    lines = [f"{len(made)} models were made, of {len(outcomes)}: {total}.", "", *table(_HEADER, list(_by_path(compared)))]
    for what, names in {
        "No hidden states": [one.name for one in compared if "residual" in one.refused],
        "No site `ffn`; `residual` works": [
            one.name for one in compared if {"ffn", "residual"} & one.refused.keys() == {"ffn"}
        ],
        "One prompt at a time": [one.name for one in compared if not one.together],
        "Refused when opened": [one.name for one in made if "opening" in one.refused],
        "Not made tiny here": [one.name for one in outcomes if one.not_made],
    }.items():
        if names:
            lines += ["", f"{what}: {', '.join(f'`{name}`' for name in names)}."]
    return lines


_HEADER = ["path", "result", "models", "apart, at most", "time by that of `generate`, median", "names, each with its time"]


def _by_path(compared: Sequence[Outcome]) -> Iterator[list[str]]:
    """A row for all models with one path and verdict."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for one in compared:
        groups.setdefault((one.path, one.verdict), []).append(one)
    for (path, verdict), members in sorted(groups.items()):
        apart = max(value for one in members for value in (0.0, *one.apart.values()))
        times = [one.times_generate for one in members if one.times_generate is not None]
        names = ", ".join(f"`{one.name}`{'' if (time := one.times_generate) is None else f' {time:.2f}'}" for one in members)
        yield [path, verdict, str(len(members)), f"{apart:.0e}", f"{median(times):.2f}" if times else "–", names]


def write_page(page: Path, lines: Sequence[str]) -> None:
    """Put the table below its mark."""
    before, mark, _ = page.read_text("utf-8").partition(_MARK)
    if not mark:
        raise ValueError(f"{page} has no line {_MARK!r}")
    page.write_text("\n".join([before + mark, "", *lines]) + "\n", "utf-8")


if __name__ == "__main__":
    sys.exit(main())

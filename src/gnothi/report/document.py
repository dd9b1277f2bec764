"""Everything that a report shows, as one JSON-ready document per data set: page, JSON and CSV are written from it alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from gnothi.calibration import compare as gates
from gnothi.calibration.ends import ByMethod
from gnothi.calibration.from_run import replay_methods
from gnothi.calibration.replay import Replay
from gnothi.calibration.verdicts import paired_scores, truth
from gnothi.config import as_text
from gnothi.errors import InvalidInput
from gnothi.report.costs import Prices, costs
from gnothi.report.sections import Section
from gnothi.report.selective import selective
from gnothi.report.summary import summarise
from gnothi.runs.folder import EXECUTION
from gnothi.runs.rows import group, jsonable, rounded
from gnothi.stats.crossfit import crossfit_probabilities
from gnothi.stats.intervals import mean, mean_interval
from gnothi.stats.reliability import ece, ece_interval, reliability


def document(
    section: Section, prices: Prices | None = None, never: str | None = None, always: str | None = None
) -> dict[str, Any]:
    """The summary of ``gnothi eval --json`` and beside it:

    ``gates``: what ``gnothi gates`` says of the rows, with ``points``, the methods on the same questions; None where never or
    always is missing, with the reason in ``no_gates``. ``selective`` and ``reliability`` per method, ``costs`` per method,
    ``prices``, ``runs``, the settings in which they differ (``differences``: setting and its values, run by run) and how many
    answers are ``missing``. ``never`` and ``always`` name the methods that gates are replayed
    between. Raises UnknownName for one that is not there, InvalidSetting where both are the same."""
    by_method = group(section.rows)
    summary = summarise(section.rows, section.dataset, section.trusting)
    replayed, reason = _gates(section, by_method, never, always)
    found = {
        **summary,
        "runs": [path.name for path in section.runs],
        "differences": _differences(section),
        "questions": len({row.question_id for row in section.rows}),
        "missing": section.missing,
        "gates": replayed,
        "no_gates": reason,
        "selective": _present({name: selective(rows) for name, rows in by_method.items()}),
        "reliability": _present(_reliability(by_method, section.trusting)),
        "prices": None if prices is None else asdict(prices),
        "costs": [{"method": name, **costs(rows, prices)} for name, rows in by_method.items()],
    }
    return dict(jsonable(rounded(found)))


def _differences(section: Section) -> list[dict[str, Any]]:
    """Of several runs; settings that results do not depend on are left aside, and those of methods that a run does not have."""
    keys = dict.fromkeys(key for config in section.configs for key in config if not key.startswith(EXECUTION))
    found = []
    for key in keys:
        values = [as_text(config[key]) if key in config else None for config in section.configs]
        comparable = [value for value in values if value is not None or not key.startswith("method.")]
        if len(set(comparable)) > 1:
            found.append({"setting": key, "values": [value or "" for value in values]})
    return found


def _gates(
    section: Section, by_method: ByMethod, never: str | None, always: str | None
) -> tuple[dict[str, Any] | None, str | None]:
    what = "the report" if len(section.runs) > 1 else "the run"
    try:
        replay = replay_methods(by_method, section.trusting, what, "", section.dataset, never=never, always=always)
    except InvalidInput as error:
        return None, str(error)
    found = gates.document(replay)
    kept = {key: value for key, value in found.items() if key not in ("file", "dataset", "warnings")}
    return kept | {"points": _points(replay, by_method)}, None


def _points(replay: Replay, by_method: ByMethod) -> list[dict[str, Any]]:
    """Each method that answered all questions of the replay: how good, and for how many questions it searched."""
    found = []
    for name, rows in by_method.items():
        table = {row.question_id: row for row in rows if row.metrics}
        if not all(question in table for question in replay.questions):
            continue
        quality = [table[question].metrics[replay.metric] for question in replay.questions]
        found.append(
            {
                "method": name,
                "accuracy": mean(quality),
                "interval": mean_interval(quality),
                "retrieval_rate": mean(table[question].retrieved for question in replay.questions),
            }
        )
    return found


def _reliability(by_method: ByMethod, trusting: Collection[str]) -> dict[str, dict[str, Any] | None]:
    """Gate scores as probabilities of a wrong closed-book answer (isotonic, fitted on the other folds), and what happened."""
    known = truth(by_method, trusting=trusting)
    found: dict[str, dict[str, Any] | None] = {}
    for name, rows in by_method.items():
        one = reliability_of(*paired_scores(rows, known))
        if one is not None and known is not None:
            found[name] = {"truth": known.source, **one}
    return found


def reliability_of(scores: Sequence[float], wrong: Sequence[bool]) -> dict[str, Any] | None:
    """Scores as probabilities of a wrong answer (isotonic, fitted on the other folds); None where that cannot be learnt."""
    predicted = crossfit_probabilities(scores, wrong)
    if predicted is None:
        return None
    return {
        "n": len(scores),
        "ece": ece(predicted, wrong),
        "interval": ece_interval(predicted, wrong),
        "bins": [bin._asdict() for bin in reliability(predicted, wrong)],
    }


def _present(found: Mapping[str, dict[str, Any] | None]) -> list[dict[str, Any]]:
    return [{"method": name, **one} for name, one in found.items() if one is not None]

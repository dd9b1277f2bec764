"""What a study came to: each variant's quality and cost, and how far it is from the full method on the same questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gnothi.config import as_text
from gnothi.metrics import METRICS
from gnothi.report.comparison import paired
from gnothi.runs.rows import Row, rounded, scored
from gnothi.stats.intervals import mean, mean_interval
from gnothi.studies.study import Study, Variant

MEASURES = (*METRICS, "retrieval_rate", "retrievals", "model_calls", "tokens", "gate_auroc")
"""Of every variant, each with its interval; ``tokens`` are those of prompts and replies together."""
_GROUPS = "right_action"


def document(
    study: Study,
    dataset: str,
    rows: Mapping[str, Sequence[Row]],
    summaries: Mapping[str, Mapping[str, Any]],
    folders: Mapping[str, Path],
    left_out: Mapping[str, str],
) -> dict[str, Any]:
    """The study's table, JSON-ready. ``rows`` and ``summaries`` (what ``summarise`` says of them) are by label, as are the
    ``folders`` of the runs and the reasons why variants were ``left_out``; the full method is among the rows.

    ``difference``, by metric: variant less full method on the questions that both answered, with its interval, ``p``
    (two-sided, paired) and ``p_holm``, corrected for all variants of the table; None for the full method itself.
    """
    present = [variant for variant in study.variants if variant.label in rows]
    differences = _differences(study.full, rows)
    found = {
        "study": study.name,
        "title": study.title,
        "source": study.source,
        "note": " ".join(study.note.split()),
        "dataset": dataset,
        "questions": max(len(own) for own in rows.values()),
        "metric": study.metric,
        "axis": study.axis,
        "full": study.full,
        "variants": [
            _variant(variant, rows[variant.label], summaries[variant.label], differences.get(variant.label))
            | {"run": str(folders[variant.label])}
            for variant in present
        ],
        "left_out": [{"label": label, "reason": reason} for label, reason in left_out.items()],
        "warnings": [f"{label}: {warning}" for label in rows for warning in summaries[label]["methods"][0]["warnings"]],
    }
    return dict(rounded(found))


def _variant(
    variant: Variant, rows: Sequence[Row], summary: Mapping[str, Any], differences: dict[str, Any] | None
) -> dict[str, Any]:
    (found,) = summary["methods"]
    tokens = [row.cost["prompt_tokens"] + row.cost["generated_tokens"] for row in rows if not row.failed]
    measured = {name: found[name] for name in MEASURES if name != "tokens"}
    intervals = {name: found["intervals"][name] for name in MEASURES if name != "tokens"}
    return {
        "label": variant.label,
        "group": variant.group,
        "series": variant.series,
        "at": variant.at,
        "method": variant.method,
        "settings": {key: as_text(value) for key, value in variant.settings.items()},
        "note": variant.note,
        "n": found["n"],
        "failures": found["failures"],
        **measured,
        "tokens": mean(tokens),
        "intervals": intervals | {"tokens": mean_interval(tokens)},
        "groups": _groups(rows),
        "difference": differences,
        "paper": [{"dataset": one.dataset, "metric": one.metric, "value": one.value} for one in variant.paper],
    }


def _differences(full: str, rows: Mapping[str, Sequence[Row]]) -> dict[str, dict[str, Any]]:
    """By label and metric; empty of what no two runs have in common."""
    found: dict[str, dict[str, Any]] = {label: {} for label in rows if label != full}
    tables = {label: scored(own) for label, own in rows.items()}
    for test in paired(tables, [(label, full) for label in found]):
        kept = {key: value for key, value in test.items() if key not in ("first", "second", "metric")}
        found[test["first"]][test["metric"]] = kept
    return found


def _groups(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """In the laboratory, quality by what is right to do about a question: trust memory, retrieve, abstain."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if row.metrics and (action := row.metadata.get(_GROUPS)):
            found.setdefault(str(action), []).append(row)
    return {
        action: {"n": len(own), **{metric: mean(row.metrics[metric] for row in own) for metric in METRICS}}
        for action, own in sorted(found.items())
    }

"""A log of Inspect (the UK AI Security Institute's evaluation tool): what `inspect view` and ``read_eval_log`` open.

The form is that of inspect_ai 0.3's ``.eval`` files, a zip of JSON documents; `.ci/exports` reads ours back with Inspect.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from gnothi.metrics import METRICS
from gnothi.report.export.records import Exported, Record, replaced
from gnothi.runs.rows import jsonable
from gnothi.version import __version__

_VERSION = 2
_SOLVER = "gnothi"


def write_inspect(run: Exported, out: Path) -> int:
    """One sample for each question of one method, with every metric as a score and the decisions as metadata. Returns their
    number."""
    method = run.only("inspect")
    model = str(run.config.get("model.name", "unknown"))
    samples = [_sample(one, model) for one in run.records]
    start = {"version": _VERSION, "eval": _eval(run, method, model), "plan": {"name": "plan", "steps": [_step(run, method)]}}
    header = {**start, "status": "success", "results": _results(run.records), "stats": _stats(run.records, model)}
    with replaced(out) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        _write(archive, "_journal/start.json", start)
        for sample in samples:
            _write(archive, f"samples/{sample['id']}_epoch_1.json", sample)
        summaries = [_summary(sample) for sample in samples]
        _write(archive, "_journal/summaries/1.json", summaries)
        _write(archive, "summaries.json", summaries)
        _write(archive, "header.json", header)
    return len(samples)


def _write(archive: zipfile.ZipFile, name: str, content: Any) -> None:
    archive.writestr(name, json.dumps(jsonable(content), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"))


def _eval(run: Exported, method: str, model: str) -> dict[str, Any]:
    identity = hashlib.blake2b(f"{run.name}\0{method}".encode(), digest_size=11).hexdigest()
    dataset = str(run.config.get("dataset.name", run.name))
    identities = [one.question_id for one in run.records]
    return {
        "eval_id": identity,
        "run_id": identity,
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "task": f"{dataset}, {method}",
        "task_id": identity,
        "task_version": 0,
        "dataset": {"name": dataset, "samples": len(identities), "sample_ids": identities, "shuffled": False},
        "model": model,
        "config": {"epochs": 1},
        "packages": {"gnothi": __version__},
        "metadata": {"gnothi": dict(run.config)},
        "scorers": [{"name": name, "metrics": [{"name": "mean"}]} for name in METRICS],
    }


def _step(run: Exported, method: str) -> dict[str, Any]:
    prefix = f"method.{method}."
    settings = {key.removeprefix(prefix): value for key, value in run.config.items() if key.startswith(prefix)}
    return {"solver": f"{_SOLVER}/{method}", "params": settings, "params_passed": settings}


def _results(records: Sequence[Record]) -> dict[str, Any]:
    scores = []
    for name in METRICS:
        values = [value for one in records if (value := one.metrics[name]) is not None]
        if values:
            metrics = {"mean": {"name": "mean", "value": fmean(values)}}
            unscored = len(records) - len(values)
            scores.append(
                {
                    "name": name,
                    "scorer": name,
                    "scored_samples": len(values),
                    "unscored_samples": unscored,
                    "metrics": metrics,
                }
            )
    answered = sum(one.error is None for one in records)
    return {"total_samples": len(records), "completed_samples": answered, "scores": scores}


def _stats(records: Sequence[Record], model: str) -> dict[str, Any]:
    return {"started_at": "", "completed_at": "", "model_usage": _usage([one.cost for one in records], model)}


def _usage(costs: Sequence[Mapping[str, float | None]], model: str) -> dict[str, Any]:
    read, generated = (sum(int(cost[name] or 0) for cost in costs) for name in ("prompt_tokens", "generated_tokens"))
    return {model: {"input_tokens": read, "output_tokens": generated, "total_tokens": read + generated}}


def _sample(one: Record, model: str) -> dict[str, Any]:
    user_message = {"role": "user", "source": "input", "content": one.user_input}
    assistant_message = {"role": "assistant", "source": "generate", "model": model, "content": one.response or ""}
    seconds = one.cost["seconds"] or 0.0
    sample = {
        "id": one.question_id,
        "epoch": 1,
        "input": one.user_input,
        "choices": list(one.choices) or None,
        "target": list(one.references) or "",
        "messages": [user_message, assistant_message] if one.error is None else [user_message],
        "output": _output(assistant_message, model) if one.error is None else {"model": model, "choices": []},
        "scores": {name: {"value": value, "answer": one.response} for name, value in one.metrics.items() if value is not None},
        "metadata": _metadata(one),
        "store": {},
        "events": [],
        "model_usage": _usage([one.cost], model),
        "total_time": seconds,
        "working_time": seconds,
        "uuid": hashlib.blake2b(f"{one.method}\0{one.question_id}".encode("utf-8", "replace"), digest_size=11).hexdigest(),
    }
    failed = {"error": {"message": one.error, "traceback": "", "traceback_ansi": ""}} if one.error else {}
    return sample | failed


def _output(message: Mapping[str, Any], model: str) -> dict[str, Any]:
    return {"model": model, "choices": [{"message": message, "stop_reason": "stop"}], "completion": message["content"]}


def _metadata(one: Record) -> dict[str, Any]:
    evidence = dict(zip(one.retrieved_context_ids, one.retrieved_contexts, strict=True))
    metadata = {
        "rationale": one.rationale,
        "uncertainty": one.uncertainty,
        "decisions": one.decisions,
        "signals": one.signals,
        "evidence": evidence,
        "cost": one.cost,
        "kind": one.kind,
    }
    return {"gnothi": metadata, **one.metadata}


def _summary(sample: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("id", "epoch", "input", "choices", "target", "scores", "model_usage", "total_time", "working_time", "uuid")
    error = {"error": sample["error"]["message"]} if "error" in sample else {}
    return {name: sample[name] for name in keys} | {"metadata": {}, "completed": True, **error}

"""What we export, opened by the tools themselves, in environments of their own (`make test-exports` makes them)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gnothi.report.export.inspect import write_inspect
from gnothi.report.export.records import exported, write_ragas
from tests.report.export.made import ODD, made

INSTALLED = Path(os.environ.get("EXPORTS_FOLDER", ".exports"))
pytestmark = pytest.mark.slow


def python(tool: str) -> Path:
    found = INSTALLED / tool / "bin" / "python"
    if not found.exists():
        pytest.skip(f"{tool} is not installed: make test-exports")
    return found


def said(tool: str, code: str, path: Path) -> Any:
    finished = subprocess.run([python(tool), "-c", code, path], capture_output=True, text=True, timeout=280, check=False)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


INSPECT = """
import json, sys
from inspect_ai.analysis import evals_df, samples_df
from inspect_ai.log import read_eval_log, read_eval_log_sample, read_eval_log_sample_summaries

log = read_eval_log(sys.argv[1])
samples = sorted(log.samples, key=lambda one: one.id)
found = {
    "status": log.status,
    "model": log.eval.model,
    "task": log.eval.task,
    "mean": log.results.scores[0].metrics["mean"].value,
    "samples": [[s.input, s.target, s.output.completion, {k: v.value for k, v in s.scores.items()}] for s in samples],
    "failed": [s.error.message for s in log.samples if s.error],
    "decisions": samples[1].metadata["gnothi"]["decisions"],
    "evidence": samples[1].metadata["gnothi"]["evidence"],
    "tokens": log.stats.model_usage["fake"].total_tokens,
    "summaries": len(read_eval_log_sample_summaries(sys.argv[1])),
    "one": read_eval_log_sample(sys.argv[1], id="odd/id").input,
    "frames": [len(samples_df(sys.argv[1])), len(evals_df(sys.argv[1]))],
}
print(json.dumps(found))
"""


async def test_inspect(tmp_path: Path) -> None:
    out = tmp_path / "logs" / "run.eval"
    assert write_inspect(exported(await made(tmp_path / "run"), ["scripted"]), out) == 7
    found = said("inspect", INSPECT, out)
    asked = ODD.encode("utf-8", "replace").decode()
    assert (found["status"], found["model"], found["task"]) == ("success", "fake", "numbers, scripted")
    assert found["mean"] == pytest.approx(5 / 6)
    assert found["samples"][1] == ["What is 0?", ["0"], "0", {"em": 1, "f1": 1, "accuracy": 1}]
    assert found["samples"][0][:2] == [asked, ["Ö", "O"]]
    assert found["failed"] == ["ValueError: the model broke"]
    assert found["decisions"][0]["signal"] == "gram"
    assert [*found["evidence"]] == ["p1"]
    assert found["tokens"] == 7 * 15
    assert (found["summaries"], found["one"], found["frames"]) == (7, asked, [7, 1])


RAGAS = """
import json, sys
from ragas import EvaluationDataset

found = EvaluationDataset.from_jsonl(sys.argv[1])
print(json.dumps([found.features(), [one.model_dump(exclude_none=True) for one in found]]))
"""


async def test_ragas(tmp_path: Path) -> None:
    out = tmp_path / "ragas.jsonl"
    run = exported(await made(tmp_path / "run"), ["rag"])
    assert write_ragas(run, out) == 6
    features, samples = said("ragas", RAGAS, out)
    assert features == ["user_input", "retrieved_contexts", "retrieved_context_ids", "response", "reference"]
    assert [sample["response"] for sample in samples] == [one.response for one in run.answered]
    assert samples[0]["retrieved_contexts"] == ["Title: text"]

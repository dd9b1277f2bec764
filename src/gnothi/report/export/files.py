"""Records as JSON Lines, as RAGAS' data set, as Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gnothi.errors import MissingDependency
from gnothi.metrics import METRICS
from gnothi.report.export.records import COSTS, Exported, Record

RAGAS = ("user_input", "response", "reference", "retrieved_contexts", "retrieved_context_ids")
_BATCH = 1_000


def write_jsonl(run: Exported, out: Path) -> int:
    """One line a question and method. Returns their number."""
    return _lines(out, [one.as_dict() for one in run.records])


def write_ragas(run: Exported, out: Path) -> int:
    """What ``ragas.EvaluationDataset.from_jsonl`` reads: a line for each answer of one method; failures have none."""
    run.only("ragas")
    return _lines(out, [{name: getattr(one, name) for name in RAGAS} for one in run.answered])


def write_parquet(run: Exported, out: Path) -> int:
    """As ``write_jsonl``: lists stay lists, ``decisions`` and ``signals`` are lists of records, ``metadata`` is JSON. The run's
    settings are in the file's own metadata. Raises MissingDependency."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependency("pyarrow", "parquet", "<--to parquet>") from error
    text, number, texts = pa.string(), pa.float64(), pa.list_(pa.string())
    decision = {"kind": text, "signal": text, "score": number, "threshold": number, "verdict": text, "subject": text}
    columns: dict[str, Any] = dict.fromkeys(("method", "question_id", "user_input", "response", "reference"), text)
    columns |= dict.fromkeys(("references", "retrieved_contexts", "retrieved_context_ids", "choices"), texts)
    columns |= {"kind": text, "rationale": text, "uncertainty": number}
    columns |= {"decisions": pa.list_(pa.struct(decision)), "signals": pa.list_(pa.struct({"signal": text, "score": number}))}
    columns |= {"metadata": text, "error": text} | dict.fromkeys((*METRICS, *COSTS), number)
    schema = pa.schema(columns, metadata={"gnothi.run": run.name, "gnothi.config": json.dumps(run.config, default=str)})
    with replaced(out) as file, pq.ParquetWriter(file, schema) as writer:
        for start in range(0, len(run.records), _BATCH):
            rows = [_columnar(one) for one in run.records[start : start + _BATCH]]
            writer.write_table(pa.Table.from_pylist(rows, schema))
    return len(run.records)


def _columnar(one: Record) -> dict[str, Any]:
    found = one.as_dict()
    found["signals"] = [{"signal": name, "score": score} for name, score in one.signals.items()]
    found["decisions"] = [{**decision, "threshold": _as_number(decision["threshold"])} for decision in found["decisions"]]
    found["metadata"] = json.dumps(found["metadata"], ensure_ascii=False)
    return found


def _as_number(value: Any) -> float | None:
    return None if value is None else float(value)


def _lines(out: Path, lines: Sequence[Mapping[str, Any]]) -> int:
    with replaced(out) as file:
        for line in lines:
            file.write(json.dumps(line, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace") + b"\n")
    return len(lines)


@contextmanager
def replaced(out: Path) -> Iterator[Any]:
    """A file that takes the place of ``out`` when all is written."""
    out.parent.mkdir(parents=True, exist_ok=True)
    temporary = out.with_name(f".{out.name}.new")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(out)
    finally:
        temporary.unlink(missing_ok=True)

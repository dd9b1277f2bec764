"""The answers of a run as records that stand alone: with the texts of their evidence, by RAGAS' names."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gnothi.errors import InvalidInput, InvalidSetting, MissingDependency, UnknownName
from gnothi.metrics import METRICS
from gnothi.runs.folder import every_event, read_config, read_rows
from gnothi.runs.rows import Key, Row, group, jsonable

COSTS = ("retrievals", "model_calls", "prompt_tokens", "generated_tokens", "thought_tokens", "cached_calls", "seconds")


@dataclass(frozen=True, slots=True)
class Record:
    """``user_input``, ``response``, ``reference``, ``retrieved_contexts`` and their ids are RAGAS' names; ``reference`` is the
    first gold answer, ``references`` all. ``retrieved_contexts`` are the passages that the answer rests on. ``error`` is that
    of a question that failed, which has no response. ``metrics`` and ``cost`` are by name; what is None was not measured."""

    method: str
    question_id: str
    user_input: str
    response: str | None
    reference: str | None
    references: tuple[str, ...]
    retrieved_contexts: tuple[str, ...]
    retrieved_context_ids: tuple[str, ...]
    choices: tuple[str, ...]
    kind: str
    rationale: str
    uncertainty: float | None
    metrics: Mapping[str, float | None]
    cost: Mapping[str, float | None]
    decisions: tuple[Mapping[str, Any], ...]
    signals: Mapping[str, float | None]
    metadata: Mapping[str, Any]
    error: str | None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, metrics and costs as keys of their own."""
        plain: dict[str, Any] = jsonable(asdict(self))
        return {**{key: value for key, value in plain.items() if key not in ("metrics", "cost")}, **self.metrics, **self.cost}


@dataclass(frozen=True, slots=True)
class Exported:
    """A run to be written elsewhere. ``config`` has the settings that it was made with, by dotted key; ``textless`` counts
    passages of which only the id was recorded."""

    name: str
    config: Mapping[str, Any]
    records: tuple[Record, ...]
    textless: int

    @property
    def answered(self) -> tuple[Record, ...]:
        return tuple(one for one in self.records if one.error is None)

    def only(self, format: str) -> str:
        """The one method, for a format that holds one. Raises InvalidSetting where there are several."""
        names = list(dict.fromkeys(one.method for one in self.records))
        if len(names) > 1:
            raise InvalidSetting(
                f"<--to {format}>: got a run of {len(names)} methods, and such a file holds one. Choose it with "
                f"<--method NAME>: {', '.join(names)}."
            )
        return names[0]


def exported(path: Path, methods: Collection[str] = ()) -> Exported:
    """The run in that folder, finished or not; of all its methods, or of some.

    Raises InvalidInput for what is no run, or an empty one, and UnknownName."""
    config = read_config(path)
    rows = read_rows(path)
    if not rows:
        raise InvalidInput(f"{path} holds no answers yet. Let `gnothi eval` give some first.")
    groups = group(rows)
    for name in methods:
        if name not in groups:
            raise UnknownName(f"method of {path}", name, groups)
    rows = [row for row in rows if not methods or row.method in methods]
    texts = _texts(path, rows)
    missing = sum(identity not in texts.get(row.key, {}) for row in rows for identity in row.evidence)
    return Exported(path.name, config, tuple(_record(row, texts.get(row.key, {})) for row in rows), missing)


def _record(row: Row, texts: Mapping[str, str]) -> Record:
    return Record(
        method=row.method,
        question_id=row.question_id,
        user_input=row.question,
        response=row.answer,
        reference=row.gold[0] if row.gold else None,
        references=row.gold,
        retrieved_contexts=tuple(texts.get(identity, "") for identity in row.evidence),
        retrieved_context_ids=row.evidence,
        choices=row.choices,
        kind=row.kind,
        rationale=row.rationale,
        uncertainty=row.uncertainty,
        metrics={name: row.metrics.get(name) for name in METRICS},
        cost={name: row.cost.get(name) for name in COSTS},
        decisions=row.decisions,
        signals={name: gauge["score"] for name, gauge in row.signals.items()},
        metadata=row.metadata,
        error=f"{row.error['type']}: {row.error['message']}" if row.error else None,
    )


def _texts(path: Path, rows: Iterable[Row]) -> dict[Key, dict[str, str]]:
    """By question and method the texts of its evidence, by id."""
    needed = {row.key: set(row.evidence) for row in rows if row.evidence}
    texts: dict[Key, dict[str, str]] = {}
    for key, events in every_event(path):
        if key in needed:
            texts[key] = {identity: text for identity, text in _passages(events) if identity in needed[key]}
    return texts


def _passages(value: Any) -> Iterator[tuple[str, str]]:
    """Id and text of every passage anywhere in recorded events, titles before texts."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            if isinstance(one.get("id"), str) and isinstance(one.get("text"), str):
                title = one.get("title")
                yield one["id"], f"{title}: {one['text']}" if title else one["text"]
            stack += reversed(one.values())
        elif isinstance(one, list):
            stack += reversed(one)


# Records as JSON Lines, as RAGAS' data set, as Parquet.

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
    record = one.as_dict()
    record["signals"] = [{"signal": name, "score": score} for name, score in one.signals.items()]
    record["decisions"] = [{**decision, "threshold": _as_number(decision["threshold"])} for decision in record["decisions"]]
    record["metadata"] = json.dumps(record["metadata"], ensure_ascii=False)
    return record


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

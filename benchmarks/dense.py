"""What do vectors of an index cost, and what do they find? Three parts, each in a process of its own.

    python -m benchmarks.dense size --size 1000000 --folder SCRATCH   # graph of neighbours over made-up vectors
    python -m benchmarks.dense recall --encoder sentence-transformers/all-MiniLM-L6-v2 --folder SCRATCH
    python -m benchmarks.dense lancedb --encoder sentence-transformers/all-MiniLM-L6-v2 --folder SCRATCH

``size`` draws vectors of 384 numbers around size / 500 centres, writes them as `gnothi index embed` does, and measures building
the graph (run it again after an interruption: it goes on), opening it, and how many of the 10 nearest it finds. ``recall`` is
the share of a question's supporting passages among the first 5 and 10, on HotpotQA and 2WikiMultiHopQA (shared/data), all
13,797 passages of both as one corpus, by words, by vectors and by both. ``lancedb`` builds a table of the same passages with
the same vectors (they are not made twice) by `gnothi index build`'s own function, and asks it and our index the same: recall,
for how many questions the first passage is the same, and CPU time of a search.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks._data import data_folder
from benchmarks.retrieval import OwnMemory
from gnothi.protocols import Retriever
from gnothi.types import Passage, ScoredPassage

DIMENSION = 384
AROUND = 500
CHUNK = 10_000
QUERIES = 200
K = 10
SETS = ("hotpotqa", "2wikimultihopqa")
DEPTHS = (5, 10)
NEEDED = "put it there"


def made_up(size: int) -> Iterator[np.ndarray[Any, np.dtype[np.float32]]]:
    """Chunks of vectors of length 1."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((max(1, size // AROUND), DIMENSION), np.float32)
    for start in range(0, size, CHUNK):
        drawn = centres[rng.integers(0, len(centres), min(CHUNK, size - start))]
        drawn = drawn + 0.8 * rng.standard_normal(drawn.shape, np.float32)
        yield drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def measure_size(folder: Path, size: int) -> dict[str, float]:
    from gnothi.retrieval.dense.index import Neighbours
    from gnothi.retrieval.dense.store import FOLDER, Manifest, Store

    index = folder / f"{size}"
    index.mkdir(parents=True, exist_ok=True)
    manifest = Manifest("made-up", dimension=DIMENSION)
    store = Store(index, manifest)
    if len(store.rows) < size:
        for chunk in made_up(size):
            first = len(store.rows)
            store.add(chunk, {f"p{first + place}": b"" for place in range(len(chunk))})
    own, measured = OwnMemory(), {"vectors": float(size), "vectors_mb": size * DIMENSION * 4 / 1e6}
    before, wall, cpu = own.peak, time.perf_counter(), time.process_time()
    came = [0]

    def report(done: int, total: int, fresh: int) -> None:
        came[0] = fresh
        if done % 50_000 == 0:
            print(f"{done:,} of {total:,}, {time.process_time() - cpu:.0f} CPU s, {own.peak:.0f} MB", flush=True)  # noqa: T201

    Neighbours.build(store, report)
    if came[0]:
        measured |= {"built": came[0], "build_s": time.perf_counter() - wall, "build_cpu_s": time.process_time() - cpu}
        measured |= {"build_peak_mb": own.peak - before}
    vectors = store.vectors()
    measured["graph_mb"] = sum(file.stat().st_size for file in (index / FOLDER).glob("neighbours-*")) / 1e6
    opening = []
    for _ in range(5):
        began = time.perf_counter()
        graph = Neighbours.open(index / FOLDER, manifest)
        opening.append((time.perf_counter() - began) * 1e3)
    assert graph is not None
    measured["open_ms"] = statistics.median(opening)
    rng = np.random.default_rng(7)
    noise = rng.standard_normal((QUERIES, DIMENSION), np.float32) * np.float32(0.6 / math.sqrt(DIMENSION))
    queries = vectors[np.sort(rng.choice(size, QUERIES, replace=False))] + noise
    scores = np.concatenate([queries @ vectors[start : start + CHUNK].T for start in range(0, size, CHUNK)], axis=1)
    shares, times = [], []
    for query, exact in zip(queries, np.argpartition(-scores, K, axis=1)[:, :K], strict=True):
        began = time.thread_time()
        rows = graph.near(query, K + 32, size)
        best = rows[np.argsort(-(vectors[rows] @ query))[:K]]
        times.append((time.thread_time() - began) * 1e3)
        shares.append(len(set(best.tolist()) & set(exact.tolist())) / K)
    store.close()
    return measured | {"recall_at_10": statistics.mean(shares), "query_cpu_ms": statistics.median(times)}


def measure_recall(folder: Path, encoder: str) -> dict[str, dict[str, dict[str, float]]]:
    from gnothi.retrieval.registry import open_index

    index = _embedded(folder, encoder)
    ways = {
        "words": open_index(index),
        "vectors": open_index(f"dense:{index}"),
        "both": open_index(f"hybrid:{index}"),
    }
    found = {way: asyncio.run(_rankings(retriever)) for way, retriever in ways.items()}
    return {name: {way: _recalls(one[name], name) for way, one in found.items()} for name in SETS}


def measure_lancedb(folder: Path, encoder: str) -> dict[str, Any]:
    from gnothi.retrieval.build import build
    from gnothi.retrieval.dense.encoders import Encoding
    from gnothi.retrieval.registry import open_index

    index = _embedded(folder, encoder)
    ours = {"words": str(index), "vectors": f"dense:{index}", "both": f"hybrid:{index}"}
    for way in ours:
        described = f'server = "{folder / "lance"}"\nencoder = "{encoder}"\nby = "{way}"\n'
        (folder / f"lance-{way}.toml").write_text(described, encoding="utf-8")
    kept, began = StoredVectors(index), time.process_time()
    with mock.patch.object(Encoding, "passages", return_value=kept):
        report = build([folder / "passages.jsonl"], f"lancedb:{folder / 'lance-both.toml'}", words=0)
    measured: dict[str, Any] = {"passages": report.passages, "added": report.added}
    measured["build_without_encoding_cpu_s"] = time.process_time() - began
    measured["disk_mb"] = sum(one.stat().st_size for one in (folder / "lance").rglob("*") if one.is_file()) / 1e6
    for way, spec in ours.items():
        cost: dict[str, float] = {}
        given = {}
        for name, one in (("ours", spec), ("lancedb", f"lancedb:{folder / f'lance-{way}.toml'}")):
            retriever, began = open_index(one), time.process_time()
            given[name] = asyncio.run(_rankings(retriever))
            cost[name] = (time.process_time() - began) * 1e3 / sum(map(len, given[name].values()))
        measured[way] = {
            name: {who: _recalls(found[name], name) for who, found in given.items()}
            | {"same_first": _same_first(given["ours"][name], given["lancedb"][name])}
            for name in SETS
        } | {"query_cpu_ms": cost}
    return measured


def _embedded(folder: Path, encoder: str) -> Path:
    """Our index of the passages, with their vectors. Goes on where it was."""
    from gnothi.retrieval.build import build
    from gnothi.retrieval.dense.embed import embed
    from gnothi.retrieval.dense.encoders import Encoding

    folder.mkdir(parents=True, exist_ok=True)
    source, index = folder / "passages.jsonl", folder / "index"
    if not index.exists():
        numbered = enumerate(dict.fromkeys(_corpus(data_folder(NEEDED))))
        lines = (json.dumps({"_id": f"p{n}", "title": title, "text": text}) + "\n" for n, (title, text) in numbered)
        source.write_text("".join(lines), encoding="utf-8")
        build([source], index, words=0)
    embed(index, Encoding(encoder), on_progress=lambda one: print(one, flush=True))  # noqa: T201
    return index


class StoredVectors:
    """An encoder of passages that looks their vectors up in our index."""

    def __init__(self, index: Path) -> None:
        from gnothi.retrieval.dense.store import FOLDER, Rows, mapped, read_manifest

        manifest = read_manifest(index)
        assert manifest is not None
        rows = Rows(index / FOLDER, manifest.generation)
        self._vectors = mapped(index / FOLDER, manifest, len(rows))
        self._places = {key: row for row, key in rows.ids(range(len(rows))).items()}

    def __call__(self, passages: Sequence[Passage]) -> np.ndarray[Any, np.dtype[np.float32]]:
        if [one.id for one in passages] == [""]:  # asked how long vectors are
            return np.zeros((1, self._vectors.shape[1]), np.float32)
        return np.asarray(self._vectors[[self._places[one.id] for one in passages]])


def _corpus(data: Path) -> Iterator[tuple[str, str]]:
    for name in SETS:
        for line in (data / f"{name}.jsonl").read_text("utf-8").splitlines():
            yield from ((one["title"], one["text"]) for one in json.loads(line)["passages"])
    for one in json.loads((data / "2wikimultihopqa_corpus.json").read_text("utf-8")):
        yield one["title"], one["text"]


def _questions(name: str) -> list[Any]:
    return [json.loads(line) for line in (data_folder(NEEDED) / f"{name}.jsonl").read_text("utf-8").splitlines()]


async def _rankings(retriever: Retriever) -> Mapping[str, list[tuple[ScoredPassage, ...]]]:
    """What is found for each question of each set."""
    found = {
        name: [await retriever.search(question["question"], max(DEPTHS)) for question in _questions(name)] for name in SETS
    }
    await retriever.aclose()
    return found


def _recalls(found: Sequence[Sequence[ScoredPassage]], name: str) -> dict[str, float]:
    """The share of a question's supporting titles among those of the first passages, as a mean over questions."""
    shares: dict[str, list[float]] = {f"recall_at_{depth}": [] for depth in DEPTHS}
    for question, passages in zip(_questions(name), found, strict=True):
        wanted = {one["title"] for one in question["passages"] if one["supporting"]}
        for depth in DEPTHS:
            titles = {one.passage.title for one in passages[:depth]}
            shares[f"recall_at_{depth}"].append(len(wanted & titles) / len(wanted))
    return {name: statistics.mean(values) for name, values in shares.items()}


def _same_first(one: Sequence[Sequence[ScoredPassage]], other: Sequence[Sequence[ScoredPassage]]) -> float:
    pairs = list(zip(one, other, strict=True))
    return statistics.mean(a[0].passage.id == b[0].passage.id for a, b in pairs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("size", "recall", "lancedb"))
    parser.add_argument("--folder", required=True, help="where to work, and to go on")
    parser.add_argument("--size", type=int, default=200_000, help="number of vectors")
    parser.add_argument("--encoder", default="sentence-transformers/all-MiniLM-L6-v2")
    options = parser.parse_args()
    if options.part == "size":
        found: Any = measure_size(Path(options.folder), options.size)
    else:
        found = {"recall": measure_recall, "lancedb": measure_lancedb}[options.part](Path(options.folder), options.encoder)
    print(json.dumps(found, indent=1))  # noqa: T201
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

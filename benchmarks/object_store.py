"""What does an object store cost a search of LanceDB beside the disk? The same passages in a folder and in a store on loopback.

    python -m benchmarks.object_store --store FOLDER/store/bin/moto_server [--passages 10000] [--queries 100] [--json]

FOLDER is the environment that ``.ci/beside FOLDER`` makes; run it with FOLDER/bin/python. Passages and queries of six words
are those of ``benchmarks.retrieval``. The store answers from memory, in a process of its own, whose time does not count; a real
one is a network away. Each place is searched twice through, alternating; opening is timed alone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._shared import as_json, machine, publish, table
from benchmarks.retrieval import sample_queries, write_corpus
from gnothi.retrieval.build import build
from gnothi.retrieval.registry import open_index
from tests.retrieval.servers.store import BUCKET, KEYS, store

ROUNDS = 2
DISK, STORE = "disk", "object store"


def measured(spec: str, queries: list[str], into: dict[str, list[float]]) -> list[list[str]]:
    """The ids that are found; milliseconds of the clock and of this process go ``into`` it."""

    async def search() -> list[list[str]]:
        began = time.perf_counter()
        index = open_index(spec)
        into["open_ms"].append((time.perf_counter() - began) * 1e3)
        found = []
        for query in queries:
            began, cpu = time.perf_counter(), time.process_time()
            found.append([one.passage.id for one in await index.search(query, 10)])
            into["query_ms"].append((time.perf_counter() - began) * 1e3)
            into["query_cpu_ms"].append((time.process_time() - cpu) * 1e3)
        await index.aclose()
        return found

    return asyncio.run(search())


def compared(server: Path, passages: int, count: int) -> dict[str, Any]:
    os.environ.update(KEYS)
    with tempfile.TemporaryDirectory() as name, store(server) as address:
        folder = Path(name)
        write_corpus(folder / "corpus.jsonl", passages)
        where = f'server = "s3://{BUCKET}/lance"\nendpoint = "{address}"\nregion = "us-east-1"\n'
        (folder / "store.toml").write_text(where)
        specs = {DISK: f"lancedb:{folder / 'lance'}", STORE: f"lancedb:{folder / 'store.toml'}"}
        times: dict[str, dict[str, list[float]]] = {name: {"open_ms": [], "query_ms": [], "query_cpu_ms": []} for name in specs}
        row: dict[str, Any] = {name: {} for name in specs}
        for name, spec in specs.items():
            began, cpu = time.perf_counter(), time.process_time()
            build([folder / "corpus.jsonl"], spec)
            row[name] |= {"build_s": time.perf_counter() - began, "build_cpu_s": time.process_time() - cpu}
        queries = [short for short, _ in sample_queries(folder / "corpus.jsonl")][:count]
        found = {name: measured(spec, queries, times[name]) for _ in range(ROUNDS) for name, spec in specs.items()}
    for name, each in times.items():
        row[name] |= {what: statistics.median(values) for what, values in each.items()}
        row[name]["query_ms_p95"] = statistics.quantiles(each["query_ms"], n=20)[-1]
    return row | {"alike": found[DISK] == found[STORE]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", required=True, type=Path, help="the program of the store")
    parser.add_argument("--passages", type=int, default=10_000, help="[%(default)s]")
    parser.add_argument("--queries", type=int, default=100, help="[%(default)s]")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args()
    row = compared(given.store, given.passages, given.queries)
    names = list(row[DISK])
    lines = table(["", DISK, STORE], [[name, *(f"{row[place][name]:.3g}" for place in (DISK, STORE))] for name in names])
    document = {"benchmark": "object_store", "machine": machine(), "passages": given.passages, "found": row}
    publish(as_json(document), [*lines, f"found alike: {row['alike']}"], given.json)


if __name__ == "__main__":
    main()

"""What does an index cost? Builds made-up corpora of passages of 100 words and measures building, opening, searching (cold:
with none of its files in memory), adding 1,000 passages, and the same build once more with nothing new.

    python -m benchmarks.retrieval --sizes 10000,100000,1000000 [--peer bm25s] [--peer sqlite] [--json]

Every measurement runs in a process of its own: CPU seconds and peak resident memory are that process's alone. Words follow
Zipf's law over 200,000 made-up words; queries are words of random passages. The corpus is written first and not measured.

Each ``--peer`` builds, saves and searches the same corpus with the same queries; and how many of its first ten passages are
among our first ten is counted. ``bm25s`` (``pip install bm25s``): its scores are held in memory while it builds, the text of
the passages is not part of its index, and it is searched from mapped files. ``sqlite`` is FTS5, which Python brings: an
inverted index on the disk, ids and text beside it; it is asked 30 of the queries, as each takes long. Neither stems words, as
ours does.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

VOCABULARY = 200_000
WORDS = 100
QUERIES = 300
SQLITE_QUERIES = 30
CHUNK = 5_000
ADDED = 1_000
LIMITS = {"build_peak_mb": 1000, "open_ms": 100}


def vocabulary() -> np.ndarray[Any, np.dtype[np.object_]]:
    """Made-up words, the short ones first (and so the most frequent)."""
    syllables = [a + b for a in "bcdfghjklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "er", "is", "ol")]
    words = itertools.chain.from_iterable(itertools.product(syllables, repeat=length) for length in (1, 2, 3))
    return np.array(["".join(word) for word in itertools.islice(words, VOCABULARY)], dtype=object)


def texts(size: int) -> Iterator[str]:
    words = vocabulary()
    rng = np.random.default_rng(1)
    weights = 1 / (np.arange(len(words)) + 2.7)  # Zipf-Mandelbrot
    cumulative = np.cumsum(weights / weights.sum())
    for start in range(0, size, CHUNK):
        drawn = np.searchsorted(cumulative, rng.random((min(CHUNK, size - start), WORDS)))
        for row in np.minimum(drawn, len(words) - 1):
            yield " ".join(words[row])


def write_corpus(path: Path, size: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for i, text in enumerate(texts(size)):
            file.write(json.dumps({"id": f"p{i}", "title": text[: text.index(" ", 12)], "text": text}) + "\n")


def peak_mb() -> float:
    """Peak resident memory of this process since it was executed (getrusage would count its parent's before)."""
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class OwnMemory(threading.Thread):
    """Samples the peak of memory that is not mapped files. Those count as resident while an index is merged, but the system
    takes them back when it needs room."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0.0
        self.start()

    def run(self) -> None:
        while True:
            try:
                status = Path("/proc/self/status").read_text()
            except OSError:  # not Linux
                return
            self.peak = max(self.peak, int(status.split("RssAnon:")[1].split()[0]) / 1024)
            time.sleep(0.05)


def measure_build(source: Path, out: Path, memory_mb: int) -> dict[str, float]:
    from gnothi.retrieval.build import build

    own = OwnMemory()
    started, cpu = time.perf_counter(), time.process_time()
    build([source], out, memory_mb=memory_mb)
    cpu = time.process_time() - cpu
    disk = sum(file.stat().st_size for file in out.iterdir()) / 1e6
    seconds = time.perf_counter() - started
    return {"build_s": seconds, "build_cpu_s": cpu, "build_peak_mb": peak_mb(), "build_own_peak_mb": own.peak, "disk_mb": disk}


def measure_update(source: Path, out: Path, memory_mb: int) -> dict[str, float]:
    """CPU seconds."""
    from gnothi.retrieval.build import build

    more = source.with_suffix(".more.jsonl")
    with more.open("w", encoding="utf-8") as file:
        for i, text in enumerate(itertools.islice(texts(CHUNK), ADDED)):
            file.write(json.dumps({"id": f"more{i}", "title": "More", "text": text}) + "\n")
    row = {}
    for name, given in (("add_1000_cpu_s", more), ("nothing_new_cpu_s", source)):
        cpu = time.process_time()
        build([given], out, memory_mb=memory_mb)
        row[name] = time.process_time() - cpu
    return row


def forget(out: Path) -> None:
    """Files of the index are read from the disk again."""
    for path in out.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def measure_cold(source: Path, out: Path) -> dict[str, float]:
    """Wall time of the first query; the disk's, mostly."""
    queries = sample_queries(source)
    from gnothi.retrieval.bm25 import BM25Index

    forget(out)
    started = time.perf_counter()
    index = BM25Index.open(out)
    for number in range(10):
        index.search_blocking(queries[number][0], 10)
        if not number:
            first = time.perf_counter() - started
    return {"cold_first_query_ms": first * 1e3, "cold_ten_queries_ms": (time.perf_counter() - started) * 1e3}


def measure_search(source: Path, out: Path) -> dict[str, float]:
    queries = sample_queries(source)
    from gnothi.retrieval.bm25 import BM25Index

    started = time.perf_counter()
    index = BM25Index.open(out)
    opened = time.perf_counter()
    index.search_blocking(queries[0][0], 10)
    first = time.perf_counter()
    row = {"open_ms": (opened - started) * 1e3, "first_query_ms": (first - opened) * 1e3}
    row |= timed("", queries, lambda query: [one.passage.id for one in index.search_blocking(query, 10)], out)
    row["search_peak_mb"] = peak_mb()
    return row


def timed(prefix: str, queries: Sequence[tuple[str, str]], search: Callable[[str], list[str]], out: Path) -> dict[str, float]:
    """CPU milliseconds of queries; what is found is kept beside ``out``."""
    row, found = {}, {}
    for kind, column in (("short", 0), ("long", 1)):
        times = []
        for pair in queries:
            began = time.thread_time()
            found[pair[column]] = search(pair[column])
            times.append((time.thread_time() - began) * 1e3)
        row[f"{prefix}{kind}_query_cpu_ms_p50"] = statistics.median(times)
        row[f"{prefix}{kind}_query_cpu_ms_p95"] = statistics.quantiles(times, n=20)[-1]
    found_by(out).write_text(json.dumps(found))
    return row


def found_by(out: Path) -> Path:
    return out.with_name(out.name + ".found.json")


def overlaps(prefix: str, ours: Path, theirs: Path) -> dict[str, float]:
    """The share of the first ten passages of one that is among the other's, averaged over the queries that both were asked."""
    mine, other = (json.loads(found_by(path).read_text()) for path in (ours, theirs))
    shares: dict[str, list[float]] = {"short": [], "long": []}
    for query, ids in other.items():
        shares["short" if len(query.split()) < 10 else "long"].append(len(set(ids) & set(mine[query])) / 10)
    return {f"{prefix}_{kind}_overlap_at_10": statistics.mean(each) for kind, each in shares.items()}


def sample_queries(source: Path) -> list[tuple[str, str]]:
    """(6 words, 60 words) of random passages."""
    rng = np.random.default_rng(2)
    places = sorted(rng.integers(0, source.stat().st_size, QUERIES).tolist())
    pairs = []
    with source.open("rb") as file:
        for place in places:
            file.seek(place)
            file.readline()
            line = file.readline()
            words = json.loads(line)["text"].split() if line else ["ba"] * WORDS
            pairs.append((" ".join(rng.choice(words, 6)), " ".join(rng.choice(words, 60))))
    return pairs


def measure_bm25s_build(source: Path, out: Path) -> dict[str, float]:
    import bm25s

    own, cpu = OwnMemory(), time.process_time()
    with source.open(encoding="utf-8") as file:
        words = [f"{record['title']} {record['text']}" for record in map(json.loads, file)]
    index = bm25s.BM25(k1=1.2, b=0.75)
    index.index(bm25s.tokenize(words, stopwords=None, show_progress=False), show_progress=False)
    index.save(out, show_progress=False)
    cpu = time.process_time() - cpu
    disk = sum(file.stat().st_size for file in out.iterdir()) / 1e6
    return {
        "bm25s_build_cpu_s": cpu,
        "bm25s_build_peak_mb": peak_mb(),
        "bm25s_build_own_peak_mb": own.peak,
        "bm25s_disk_mb": disk,
    }


def measure_bm25s_search(source: Path, out: Path) -> dict[str, float]:
    import bm25s

    queries = sample_queries(source)

    def search(query: str) -> list[str]:
        asked = bm25s.tokenize([query], stopwords=None, show_progress=False)
        places, _ = index.retrieve(asked, k=10, show_progress=False)
        return [f"p{place}" for place in places[0]]

    began = time.perf_counter()
    index = bm25s.BM25.load(out, mmap=True, show_progress=False)
    row = {"bm25s_open_ms": (time.perf_counter() - began) * 1e3}
    began = time.perf_counter()
    search(queries[0][0])
    row["bm25s_first_query_ms"] = (time.perf_counter() - began) * 1e3
    row |= timed("bm25s_", queries, search, out)
    row["bm25s_search_peak_mb"] = peak_mb()
    return row


def measure_sqlite_build(source: Path, out: Path) -> dict[str, float]:
    own, cpu = OwnMemory(), time.process_time()
    with contextlib.closing(sqlite3.connect(out)) as database, source.open(encoding="utf-8") as file:
        database.execute("CREATE VIRTUAL TABLE passages USING fts5(id UNINDEXED, words)")
        records = map(json.loads, file)
        rows = ((one["id"], f"{one['title']} {one['text']}") for one in records)
        database.executemany("INSERT INTO passages VALUES (?, ?)", rows)
        database.commit()
    cpu = time.process_time() - cpu
    return {
        "sqlite_build_cpu_s": cpu,
        "sqlite_build_peak_mb": peak_mb(),
        "sqlite_build_own_peak_mb": own.peak,
        "sqlite_disk_mb": out.stat().st_size / 1e6,
    }


def measure_sqlite_search(source: Path, out: Path) -> dict[str, float]:
    queries = sample_queries(source)[:SQLITE_QUERIES]

    def search(query: str) -> list[str]:
        asked = " OR ".join(f'"{word}"' for word in query.split())
        rows = database.execute("SELECT id FROM passages WHERE words MATCH ? ORDER BY rank LIMIT 10", (asked,))
        return [id for (id,) in rows]

    began = time.perf_counter()
    with contextlib.closing(sqlite3.connect(out)) as database:
        row = {"sqlite_open_ms": (time.perf_counter() - began) * 1e3}
        began = time.perf_counter()
        search(queries[0][0])
        row["sqlite_first_query_ms"] = (time.perf_counter() - began) * 1e3
        row |= timed("sqlite_", queries, search, out)
    row["sqlite_search_peak_mb"] = peak_mb()
    return row


PEERS = {
    "bm25s": {"bm25s-build": measure_bm25s_build, "bm25s-search": measure_bm25s_search},
    "sqlite": {"sqlite-build": measure_sqlite_build, "sqlite-search": measure_sqlite_search},
}


def in_child(*arguments: object) -> dict[str, float]:
    command = [sys.executable, "-P", __file__, "--child", *map(str, arguments)]
    measured: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return measured


def child(job: str, source: str, out: str, *rest: str) -> dict[str, float]:
    if job == "build":
        return measure_build(Path(source), Path(out), int(rest[0]))
    if job == "update":
        return measure_update(Path(source), Path(out), int(rest[0]))
    if job == "cold":
        return measure_cold(Path(source), Path(out))
    for jobs in PEERS.values():
        if job in jobs:
            return jobs[job](Path(source), Path(out))
    return measure_search(Path(source), Path(out))


def measure(size: int, folder: Path, memory_mb: int, peers: Sequence[str] = ()) -> dict[str, float]:
    source, out = folder / f"{size}.jsonl", folder / f"{size}.index"
    write_corpus(source, size)
    row: dict[str, float] = {"passages": size}
    row |= in_child("build", source, out, memory_mb)
    row |= in_child("search", source, out)
    row |= in_child("cold", source, out)
    row |= in_child("update", source, out, memory_mb)
    for peer in peers:
        for job in PEERS[peer]:
            row |= in_child(job, source, folder / f"{size}.{peer}")
        row |= overlaps(peer, out, folder / f"{size}.{peer}")
    source.unlink()
    return row


def table(rows: list[dict[str, float]]) -> str:
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(f"{row[name]:,.{1 if row[name] < 100 else 0}f}" for name in names) + " |" for row in rows]
    return "\n".join(lines)


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(*sys.argv[2:])))  # noqa: T201
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="10000,100000", help="numbers of passages, separated by commas")
    parser.add_argument("--memory-mb", type=int, default=256, help="as of `gnothi index build`")
    parser.add_argument("--folder", help="where to work; needs about 1.5 kB a passage (default: a temporary folder)")
    parser.add_argument("--peer", action="append", default=[], choices=PEERS, help="measured beside ours (repeat)")
    parser.add_argument("--json", action="store_true", help="print a list of rows as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        rows = [measure(int(size), Path(folder), options.memory_mb, options.peer) for size in options.sizes.split(",")]
    print(json.dumps(rows, indent=1) if options.json else table(rows))  # noqa: T201
    broken = [f"{name} {row[name]:.0f}" for row in rows for name, limit in LIMITS.items() if row[name] >= limit]
    if broken:
        print("over the limit: " + ", ".join(broken), file=sys.stderr)  # noqa: T201
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

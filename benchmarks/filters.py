"""What metadata and filters cost: the same made-up passages without and with five keys, in one run, best of several.

python -m benchmarks.filters SIZE FOLDER
"""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, islice
from pathlib import Path
from statistics import fmean

import click

from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.filters import as_filters
from gnothi.retrieval.writer import IndexWriter
from gnothi.types import Passage, Value

QUESTIONS, ROUNDS = 40, 9
FILTERS = {name: as_filters(name) for name in ("source=f7.md", "date>=2020-06", "page>=100", "section!=s3")}


def passages(size: int, keys: bool) -> Iterator[Passage]:
    rng = random.Random(1)
    words = [f"{a}{b}{c}{d}" for a in "bdfgklmnprst" for b in "aeiou" for c in "lmnrst" for d in ("a", "o", "in", "us", "er")]
    weights = [*accumulate(1 / place for place in range(1, len(words) + 1))]
    for n in range(size):
        known: dict[str, Value] = {"section": f"s{n % 17}", "url": f"https://x.example/{n // 50}"}
        known |= {"source": f"f{n // 50}.md", "page": n % 300}
        known["date"] = f"20{10 + n % 15:02}-{1 + n % 12:02}-{1 + n % 28:02}"
        yield Passage(f"p{n}", " ".join(rng.choices(words, cum_weights=weights, k=60)), f"t {n}", known if keys else {})


def built(size: int, keys: bool, folder: Path) -> tuple[float, int]:
    """Seconds in the engine, and bytes."""
    shutil.rmtree(folder, ignore_errors=True)
    spent = 0.0
    with IndexWriter(folder) as writer:
        for passage in passages(size, keys):
            started = time.perf_counter()
            writer.put(passage, "made")
            spent += time.perf_counter() - started
        started = time.perf_counter()
        writer.commit()
        spent += time.perf_counter() - started
    return spent, sum(file.stat().st_size for file in folder.iterdir())


def main(size: int, folder: Path) -> None:
    for keys in (False, True):
        seconds, size_of_it = built(size, keys, folder / str(keys))
        click.echo(f"{'five keys' if keys else 'no keys'}: built in {seconds:.1f} s, {size_of_it:,} bytes")
    bare, whole = (BM25Index.open(folder / str(keys)) for keys in (False, True))
    asked: dict[str, Callable[[str], object]] = {"no keys": lambda query: bare.search_blocking(query, 10)}
    asked["five keys, no filter"] = lambda query: whole.search_blocking(query, 10)
    asked |= {name: partial(whole.search_blocking, k=10, filters=one) for name, one in FILTERS.items()}
    queries = [" ".join(one.text.split()[:5]) for one in islice(passages(size, keys=False), QUESTIONS)]
    best = dict.fromkeys(((name, query) for name in asked for query in queries), float("inf"))
    for _ in range(ROUNDS):
        for query in queries:
            for name, ask in asked.items():
                started = time.perf_counter()
                ask(query)
                best[name, query] = min(best[name, query], time.perf_counter() - started)
    for name in asked:
        click.echo(f"{name}: {1000 * fmean(best[name, query] for query in queries):.3f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))

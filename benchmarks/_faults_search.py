"""A search server that faults: what is indexed there is there once, and every search finds what a whole index finds.

The server is the tests' own, which speaks what is asked of Elasticsearch and OpenSearch.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from benchmarks._faults_trial import where
from gnothi.retrieval.bm25 import BM25Index
from gnothi.types import Passage

_SEARCHES, _K, _FILES, _EACH = 120, 5, 12, 12
_SETTINGS = 'server = "{url}"\nindex = "faulty"\ntimeout = 0.4\nconnections = 16\npatience = 60.0\n'
_engines: list[str] = []
KINDS = ("elasticsearch", "opensearch")
"""What ``--only`` may name."""


def prepare(folder: Path, only: str) -> None:
    from gnothi import retrying
    from gnothi.retrieval.servers import patience

    _engines[:] = [one for one in KINDS if only in ("", one)]
    vars(retrying).update(FIRST_WAIT=0.002, LONGEST_WAIT=0.05)
    vars(patience)["_NEWS"] = 0.0
    folder.mkdir(parents=True)


def trial(number: int, seed: int, folder: Path, only: str = "") -> dict[str, Any]:  # noqa: ARG001
    """Files are indexed, some changed and indexed again, and many searches asked at once, all under faults."""
    from tests.retrieval.servers.fake import FAULTS, Fake

    rng = Random(f"{seed} search {number}")
    work = folder / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    os.chdir(work)
    engine, share = rng.choice(_engines), rng.choice((0.05, 0.2, 0.35, 0.5))
    fake = Fake(engine)
    fake.chance, fake.faults, fake.share = Random(rng.random()), tuple(rng.sample(FAULTS, rng.randint(1, len(FAULTS)))), share
    problems: list[str] = []
    try:
        problems += _tried(fake, rng)
    except Exception as error:  # noqa: BLE001 - what it is, is the finding
        problems.append(f"{type(error).__name__} {where(error)}: {error}"[:300])
    finally:
        fake.close()
    met = {fault: times for fault, times in fake.met.items() if times}
    return {
        "target": engine, "command": "index build, searches", "changed": [f"{share} of {len(fake.faults)} faults", str(met)],
        "faults": sum(met.values()), "code": 0, "problems": list(dict.fromkeys(problems)), "said": "",
    }  # fmt: skip


def _tried(fake: Any, rng: Random) -> list[str]:
    from gnothi.retrieval.build import build
    from gnothi.retrieval.registry import open_index
    from tests.retrieval.documents import made_up, write_jsonl

    docs = Path("docs")
    docs.mkdir()
    Path("index.toml").write_text(_SETTINGS.format(url=fake.url))
    spec = f"{fake.engine}:index.toml"
    corpus = {n: made_up(rng.randrange(10**9), _EACH) for n in range(_FILES)}
    for n, passages in corpus.items():
        write_jsonl(docs / f"{n}.jsonl", passages)
    build([docs], spec)
    problems = [] if _stored(fake) == _expected(corpus.values()) else ["a build leaves other passages than its files hold"]
    changed = rng.randrange(_FILES)
    corpus[changed] = made_up(rng.randrange(10**9), 3)
    write_jsonl(docs / f"{changed}.jsonl", corpus[changed])
    build([docs], spec)
    whole = _expected(corpus.values())
    if _stored(fake) != whole:
        problems.append("a second build leaves other passages than its files hold")
    passages = list(whole.values())
    fake.share, share = 0.0, fake.share
    retriever = open_index(spec)  # asks once, so that a wrong address is told at once
    fake.share = share
    queries = [f"{rng.choice(passages).text[:50]} {rng.randrange(9)}" for _ in range(_SEARCHES)]
    return problems + asyncio.run(_searched(retriever, BM25Index.in_memory(passages), queries))


async def _searched(retriever: Any, index: BM25Index, queries: Sequence[str]) -> list[str]:
    found = await asyncio.gather(*(retriever.search(query, _K) for query in queries))
    await retriever.aclose()
    problems = []
    for query, hits in zip(queries, found, strict=True):
        wanted = {one.passage.id: one.score for one in index.search_blocking(query, len(index))}
        if [one.score for one in hits] != sorted(wanted.values(), reverse=True)[:_K]:
            problems.append("a search finds other scores than a whole index")
        if any(wanted.get(one.passage.id) != one.score for one in hits) or len({one.passage.id for one in hits}) < len(hits):
            problems.append("a search finds other passages than a whole index, or one twice")
    return problems


def _expected(files: Any) -> Mapping[str, Passage]:
    return {one.id: one for passages in files for one in passages}


def _stored(fake: Any) -> Mapping[str, Passage]:
    found = [Passage(one["id"], one["text"], one["title"]) for one in fake.shelves["faulty"].documents.values()]
    by_id = {one.id: one for one in found}
    return by_id if len(by_id) == len(found) else {}

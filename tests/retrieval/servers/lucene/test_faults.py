"""A server that is full, slow, broken or lying: waited for, or said so; nothing lost, nothing twice, nothing wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from gnothi.errors import IndexUnavailable
from gnothi.retrieval.bm25 import BM25Index
from gnothi.retrieval.build import build
from gnothi.retrieval.registry import open_index
from gnothi.types import Passage
from tests.retrieval.documents import bare, made_up, sourced, write_jsonl
from tests.retrieval.servers.lucene.conftest import described, in_time, stored
from tests.retrieval.servers.lucene.fake import FAULTS, Fake

PASSAGES = made_up(7, 200)
Built = Callable[..., str]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gnothi.retrying.FIRST_WAIT", 0.002)
    monkeypatch.setattr("gnothi.retrying.LONGEST_WAIT", 0.05)
    monkeypatch.setattr("gnothi.retrieval.servers.patience._NEWS", 0.0)


@pytest.mark.slow
async def test_a_thousand_searches_of_which_a_third_meet_faults(fake: Fake, built: Built, tmp_path: Path) -> None:
    built(PASSAGES, index="faulty")
    expected = BM25Index.in_memory(PASSAGES)
    queries = [f"{PASSAGES[i % 200].text[:60]} {i % 7}" for i in range(1000)]
    retriever = open_index(described(tmp_path, fake, index="faulty", more="timeout = 0.4\nconnections = 16"))
    fake.share, fake.answered = 0.3, 0
    found = await asyncio.gather(*(retriever.search(query, 5) for query in queries))
    await retriever.aclose()
    for query, passages in zip(queries, found, strict=True):
        wanted = expected.search_blocking(query, 200)
        scores = {one.passage.id: one.score for one in wanted}
        assert [one.score for one in passages] == [one.score for one in wanted[:5]]
        assert all(scores[one.passage.id] == one.score for one in passages)
        assert len({one.passage.id for one in passages}) == len(passages)
    assert min(fake.met.values()) > 10
    assert fake.answered >= 1000


@pytest.mark.slow
def test_a_build_of_which_a_third_of_the_requests_meet_faults(fake: Fake, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(60):
        write_jsonl(
            tmp_path / "docs" / f"{number}.jsonl", [Passage(f"{number}/{i}", f"Heron {i} of {number}.") for i in range(20)]
        )
    (tmp_path / "index.toml").write_text(f'server = "{fake.url}"\nindex = "faulty"\ntimeout = 0.4\n')
    spec = f"{fake.engine}:{tmp_path / 'index.toml'}"
    fake.share = 0.3
    report = build([tmp_path / "docs"], spec)
    assert (report.passages, report.added, report.replaced) == (1200, 1200, 0)
    (tmp_path / "docs" / "7.jsonl").unlink()
    write_jsonl(tmp_path / "docs" / "8.jsonl", [Passage("8/0", "A plum.")])
    report = build([tmp_path / "docs"], spec)
    assert (report.passages, report.added, report.unchanged, report.deleted) == (1161, 1, 58, 1)
    expected = {f"{n}/{i}": (f"Heron {i} of {n}.", n) for n in range(60) for i in range(20) if n not in (7, 8)}
    expected["8/0"] = ("A plum.", 8)
    assert stored(fake, "faulty") == {
        key: sourced(Passage(key, text), f"docs/{n}.jsonl") for key, (text, n) in expected.items()
    }
    assert sum(fake.met.values()) > 30


@pytest.mark.parametrize("fault", FAULTS)
async def test_what_never_ends_is_told(fake: Fake, built: Built, tmp_path: Path, fault: str) -> None:
    built(PASSAGES[:20], index="away")
    fake.share, fake.faults = 0.0, (fault,)
    more = "timeout = 0.4\n" if fault == "slow" else ""
    retriever = open_index(described(tmp_path, fake, index="away", more=f"{more}patience = 0.05"))
    fake.share = 1.0
    with pytest.raises(IndexUnavailable, match="did not answer for"):
        await retriever.search(PASSAGES[0].text, 3)
    fake.share = 0.0
    assert bare((await in_time(lambda: retriever.search(PASSAGES[0].text, 1)))[0].passage) == PASSAGES[0]
    await retriever.aclose()


async def test_one_that_is_away_and_optional_is_done_without(fakes: Callable[..., Fake], built: Built, tmp_path: Path) -> None:
    one, two = fakes(), fakes()
    built(PASSAGES[:10], on=one, index="half")
    two.close()
    spec = described(tmp_path, one, two, index="half", more="patience = 0.01\noptional = true")
    retriever = open_index(spec)
    assert bare((await retriever.search(PASSAGES[0].text, 1))[0].passage) == PASSAGES[0]
    await retriever.aclose()
    with pytest.raises(IndexUnavailable, match="cannot be reached"):
        open_index(described(tmp_path, one, two, index="half"))


@pytest.mark.parametrize("fault", ["wrong", "half", "lost"])
def test_answers_to_notes_that_say_nothing_are_asked_for_again(fake: Fake, tmp_path: Path, fault: str) -> None:
    """Taken for an answer, one would make the next note look like another build's; cut in half, a refusal loses its reason."""
    fake.faults, fake.share = (fault,), 0.5
    write_jsonl(tmp_path / "passages.jsonl", PASSAGES[:20])
    (tmp_path / "index.toml").write_text(f'server = "{fake.url}"\nindex = "noted"\n')
    for seed in range(8):
        fake.chance.seed(seed)
        report = build([tmp_path / "passages.jsonl"], f"{fake.engine}:{tmp_path / 'index.toml'}")
        assert report.passages == 20
        fake.shelves.clear()
    assert fake.met[fault] > 20

from __future__ import annotations

import importlib.util
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from gnothi.errors import IndexUnavailable
from gnothi.retrieval.build import build
from gnothi.testing.conformance.retriever import CORPUS
from gnothi.types import Passage
from tests.retrieval.documents import write_jsonl
from tests.retrieval.servers.lucene.fake import Fake

PACKAGES = {"elasticsearch": "elasticsearch", "opensearch": "opensearchpy"}
_names = itertools.count()
Found = TypeVar("Found")


@pytest.fixture(params=["elasticsearch", "opensearch"])
def engine(request: pytest.FixtureRequest) -> str:
    engine: str = request.param
    for package in (PACKAGES[engine], "aiohttp"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: `make test-beside` installs it in an environment of its own")
    return engine


@pytest.fixture
def fakes(engine: str) -> Iterator[Callable[..., Fake]]:
    """Makes servers."""
    made: list[Fake] = []

    def make(**settings: Any) -> Fake:
        made.append(Fake(engine, **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def fake(fakes: Callable[..., Fake]) -> Fake:
    return fakes()


@pytest.fixture
def built(fake: Fake, tmp_path: Path) -> Callable[..., str]:
    """Build an index of passages; its spec."""

    def make(passages: Any = CORPUS, on: Fake = fake, index: str = "") -> str:
        source = write_jsonl(tmp_path / "passages.jsonl", passages)
        spec = f"{on.engine}:{on.url}/{index or f'index-{next(_names)}'}"
        build([source], spec)
        return spec

    return make


def stored(fake: Fake, index: str) -> dict[str, Passage]:
    """Every passage of an index; what was written can be searched, and lies there once."""
    shelf = fake.shelves[index]
    assert shelf.visible == shelf.documents
    found = [
        Passage(one["id"], one["text"], one["title"], json.loads(one["gnothi_metadata"])) for one in shelf.documents.values()
    ]
    assert len({one.id for one in found}) == len(found)
    return {one.id: one for one in found}


def described(folder: Path, *fakes: Fake, index: str, more: str = "") -> str:
    parts = [more, *(f'[[servers]]\nserver = "{one.url}"\nindex = "{index}"' for one in fakes)]
    (folder / "index.toml").write_text("\n".join(parts))
    return f"{fakes[0].engine}:{folder / 'index.toml'}"


async def in_time(search: Callable[[], Awaitable[Found]]) -> Found:
    """What a server finds that answers again, where its limit of time is short: a busy machine may take longer."""
    until = time.monotonic() + 120
    while True:
        try:
            return await search()
        except IndexUnavailable as error:
            if "no answer within" not in str(error) or time.monotonic() > until:
                raise

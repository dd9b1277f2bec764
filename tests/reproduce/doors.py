"""Who comes through the doors: what is opened by name while something runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gnothi.filtering.encoders import SentenceEncoder
from gnothi.protocols import KnowledgeGraph, LanguageModel, Reranker, Retriever
from gnothi.reproduce import parts
from gnothi.retrieval.dense.encoders import Encoder
from gnothi.session import sources
from gnothi.types import Question

_DOORS = {"open_model": LanguageModel, "open_index": Retriever, "open_graph": KnowledgeGraph, "open_reranker": Reranker}


def _always(protocol: type, _: object) -> type:
    return protocol


def recorder(monkeypatch: pytest.MonkeyPatch, inside: Callable[[type], Any] | None = None) -> list[tuple[type, str]]:
    """Protocol and name of all opened from now on; questions by ``Question``. ``inside`` gives what stands for things of
    a protocol; None: they are really opened."""
    found: list[tuple[type, str]] = []

    def watch(place: Any, name: str, protocol: Callable[[Any], type], spec_at: int = 0) -> None:
        door = getattr(place, name)

        def opened(*arguments: Any, **given: Any) -> Any:
            found.append((protocol(arguments[0]), str(arguments[spec_at])))
            return inside(found[-1][0]) if inside else door(*arguments, **given)

        monkeypatch.setattr(place, name, opened)

    for name, protocol in _DOORS.items():
        watch(sources, name, partial(_always, protocol))
    watch(sources, "open_learnt", lambda protocol: protocol, spec_at=1)
    if inside is None:
        from gnothi.training.reranker import job

        watch(parts, "load_questions", lambda _: Question)
        watch(SentenceEncoder, "__init__", lambda _: Encoder, spec_at=1)
        watch(job, "_loaded", lambda _: Reranker)
    return found

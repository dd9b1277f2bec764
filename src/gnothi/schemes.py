"""What a user names by ``SCHEME:ARGUMENT``: a model, an index, a graph, a re-ranker, a data set.

``mine:some/folder`` is opened by what is registered under ``mine``, and so is a bare ``mine``. A text without a scheme is the
argument of a default one: a path, or a hub id.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from gnothi.errors import UnknownName
from gnothi.registry import Registry

T_co = TypeVar("T_co", covariant=True)

_SCHEME = re.compile(r"[A-Za-z][\w-]+:")  # two letters at least: C:\folder is a path


def unknown(argument: str) -> str:  # noqa: ARG001
    """The fingerprint of what is known by its name alone."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Scheme(Generic[T_co]):
    """How things of one scheme are opened. ``open`` takes the argument, the text behind the colon (and more, for some kinds of
    things). ``fingerprint`` takes it, too, and gives a text that changes with what is there, so that a run is not resumed on
    other data; empty where that cannot be told. ``target`` opens it to be written to, a context manager; None for what is only
    read. ``summary`` is one line for listings."""

    open: Callable[..., T_co]
    summary: str = ""
    fingerprint: Callable[[str], str] = unknown
    target: Callable[[str], Any] | None = None


def as_scheme(thing: Scheme[T_co] | Callable[..., T_co]) -> Scheme[T_co]:
    """A class or function as a scheme: its documentation is the summary, an attribute ``fingerprint`` the fingerprint."""
    if isinstance(thing, Scheme):
        return thing
    summary = (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
    return Scheme(open=thing, summary=summary, fingerprint=getattr(thing, "fingerprint", unknown))


def split(registry: Registry[Any], spec: str) -> tuple[str, str]:
    """Scheme and argument; the scheme is empty where ``spec`` has none. Raises UnknownName for a scheme that does not exist."""
    head, colon, argument = spec.partition(":")
    if not colon and ("/" in spec or "\\" in spec):
        return "", spec
    if head in registry:
        return head, argument
    if _SCHEME.match(spec) and not Path(spec).exists():
        raise UnknownName(f"kind of {registry.kind} (the part before the colon of {spec!r:.60})", head, registry.names())
    return "", spec

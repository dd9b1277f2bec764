"""Which model a spec names, without loading it: what is calibrated on one model must not be used with another."""

from __future__ import annotations

from dataclasses import dataclass

from gnothi.models.engine.loading import Declaration, declared
from gnothi.models.places import Place, find
from gnothi.models.registry import scheme_of
from gnothi.models.scheme import LABORATORYS
from gnothi.weights import version_of

_LOCAL = ("transformers", "vllm")
"""The schemes of models that are folders or files, or of the hub: one is the same model under either."""


@dataclass(frozen=True, slots=True)
class Identity:
    """``fingerprint`` is empty where nothing but the name is known: a model behind an API, one that is not on this machine."""

    name: str
    fingerprint: str = ""

    def same(self, other: Identity) -> bool:
        """By fingerprint where both have one (a folder may have moved), else by name."""
        if self.fingerprint and other.fingerprint:
            return self.fingerprint == other.fingerprint
        return _unprefixed(self.name) == _unprefixed(other.name)


def identify(spec: str) -> Identity:
    """A folder by its configuration, weights and tokenizer, a GGUF file by its content, a model of the hub by the version that
    is cached. It downloads nothing."""
    place = _place(spec)
    return Identity(spec, place.fingerprint if place else _version(spec))


def content(spec: str) -> str:
    """What changes with anything that decides what a model answers and how it is used, ``gnothi.json`` included; empty where
    nothing but the name is known."""
    place = _place(spec)
    return place.content if place else _version(spec)


def declaration_of(spec: str) -> Declaration:
    """The declaration in the model's folder; nothing for a model that is no folder. Raises ModelUnavailable for one that cannot
    be read."""
    place = _place(spec)
    return declared(place.folder if place else None)


def demonstrations_of(spec: str, setting: str) -> str:
    """The set of demonstrations for a model: ``setting``, or for ``auto`` the set that its folder names."""
    return declaration_of(spec).demonstrations if setting == "auto" else setting


def _place(spec: str) -> Place | None:
    """None for a model that is neither a folder nor a file here."""
    name, _, source = scheme_of(spec)
    return find(str(LABORATORYS.get(source, source))) if name in _LOCAL else None


def _version(spec: str) -> str:
    name, scheme, source = scheme_of(spec)
    return version_of(source) if name in _LOCAL else scheme.fingerprint(source)


def _unprefixed(name: str) -> str:
    """A record may name a model whose scheme this installation lacks."""
    scheme, colon, argument = name.partition(":")
    return argument if colon and scheme in _LOCAL else name

"""Which model a spec names, told without loading it: what is calibrated on one model must not be used with another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gnothi.models.engine.loading import DECLARATION, Declaration, declared
from gnothi.models.registry import scheme_of
from gnothi.models.scheme import LAB, LAB_FOLDER
from gnothi.weights import digest, files_of, version_of

_FOLDERS = ("transformers", "vllm")
"""The schemes of models that are folders, or of the hub: one is the same model under either."""


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
    """A folder by its configuration, weights and tokenizer, a model of the hub by the version that is cached. It downloads
    nothing."""
    folder = _folder(spec)
    return Identity(spec, digest(files_of(folder)) if folder and folder.is_dir() else _version(spec))


def content(spec: str) -> str:
    """What changes with anything that decides what a model answers and how it is used, ``gnothi.json`` included; empty where
    nothing but the name is known."""
    folder = _folder(spec)
    return digest([*files_of(folder), folder / DECLARATION]) if folder and folder.is_dir() else _version(spec)


def declaration_of(spec: str) -> Declaration:
    """What the model's folder says of it; nothing for a model that is no folder. Raises ModelUnavailable for one that cannot
    be read."""
    return declared(_folder(spec))


def _folder(spec: str) -> Path | None:
    """None for a model that is no folder and of no hub."""
    name, _, source = scheme_of(spec)
    if name not in _FOLDERS:
        return None
    return LAB_FOLDER if source == LAB else Path(source).expanduser()


def _version(spec: str) -> str:
    name, scheme, source = scheme_of(spec)
    return version_of(source) if name in _FOLDERS else scheme.fingerprint(source)


def _unprefixed(name: str) -> str:
    """A record may name a model whose scheme this installation lacks."""
    scheme, colon, argument = name.partition(":")
    return argument if colon and scheme in _FOLDERS else name

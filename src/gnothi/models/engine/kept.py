"""Verdicts of trials, kept on disk: a trial of the same weights, under the same libraries and settings, comes to the same."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from gnothi.models.engine.packed import is_packed
from gnothi.models.engine.passes import Network
from gnothi.models.engine.trial import Verdict
from gnothi.models.store import folder
from gnothi.version import __version__

FOLDER = "trials"


def verdict_for(network: Network, fingerprint: str, wanted: str, settle: Callable[[Network, str], Verdict]) -> Verdict:
    """What was kept for weights with that ``fingerprint`` (empty: nothing is kept), else what a trial says now."""
    file = _file(network, fingerprint, wanted) if fingerprint else None
    if file is not None and (found := _read(file)) is not None:
        return found
    verdict = settle(network, wanted)
    if file is not None:
        with contextlib.suppress(OSError):  # where nothing can be written, each opening has its trial
            file.parent.mkdir(parents=True, exist_ok=True)
            beside = file.with_suffix(f".{os.getpid()}")
            beside.write_text(json.dumps(asdict(verdict)), "utf-8")
            beside.replace(file)
    return verdict


def _file(network: Network, fingerprint: str, wanted: str) -> Path:
    import transformers

    model = network.model
    config = model.config.to_json_string(use_diff=False)
    about = (
        fingerprint, config, type(model).__qualname__, str(model.dtype), str(model.device.type), wanted, is_packed(model),
        str(model.config._attn_implementation), torch.__version__, transformers.__version__, __version__,
    )  # fmt: skip
    return folder() / FOLDER / f"{hashlib.blake2b(json.dumps(about).encode(), digest_size=16).hexdigest()}.json"


def _read(file: Path) -> Verdict | None:
    """None where there is none, or one that was damaged."""
    try:
        found: dict[str, Any] = json.loads(file.read_text("utf-8"))
        added = tuple(one if isinstance(one, str) else tuple((str(n), float(f)) for n, f in one) for one in found.pop("added"))
        found |= {key: tuple(found[key]) for key in ("reasons", "windows")}
        return Verdict(**found, added=added)
    except (OSError, ValueError, TypeError, KeyError):
        return None

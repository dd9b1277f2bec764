"""Verdicts of trials. They are kept on disk: with the same weights, code, libraries and settings a trial ends the same.
A run's record, ``gnothi list models NAME`` and a warning describe them."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import logging
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from gnothi.errors import InvalidSetting
from gnothi.models.engine.packed import is_packed
from gnothi.models.engine.passes import Network
from gnothi.models.engine.trial import Verdict, settle
from gnothi.models.settings import Attention
from gnothi.models.store import folder

FOLDER = "trials"
log = logging.getLogger("gnothi.opening")


def verdict_of(network: Network, wanted: Attention, fingerprint: str) -> Verdict:
    """The fastest path that a trial found right."""
    verdict = _stored_or_tried(network, fingerprint, wanted) if network.of_library else network.model.verdict()
    if wanted not in ("auto", verdict.path):
        raise InvalidSetting(
            f"setting 'model.attention': got {wanted!r}, which this model does not support ({'; '.join(verdict.reasons)}); "
            "use 'auto'."
        )
    return verdict


def describe(network: Network, verdict: Verdict, wanted: Attention) -> dict[str, str]:
    """What a run records of it, and `gnothi list models NAME` shows."""
    why = "; ".join(verdict.reasons)
    if verdict.path == "plain" and wanted == "auto":
        log.warning("%s is slow here: every token costs a pass over the whole text (%s).", type(network.model).__name__, why)
    windows = f", windows of {', '.join(map(str, verdict.windows))} made small" if verdict.windows else ""
    limit = network.frequencies.limit
    entries = {
        "attention_reason": "by setting" if wanted != "auto" else why,
        "attention_implementation": "eager" if verdict.eager else "",
        "prompts_together": "" if verdict.together else "no",
        "trial": f"{verdict.path} equals plain passes in {verdict.layers} layers{windows}" if verdict.path != "plain" else "",
        "frequencies": f"of short texts up to {limit} tokens, of long ones beyond" if limit else "",
        "states": f"none: {verdict.stateless}" if verdict.stateless else "",
        "ffn": "" if verdict.stateless else _ffn(verdict),
    }
    return {key: value for key, value in entries.items() if value}


def _ffn(verdict: Verdict) -> str:
    """What the site ``ffn`` is, where it is not simply one module's output in every layer."""
    refused = sorted({one for one in verdict.added if isinstance(one, str)})
    if refused:
        count = sum(isinstance(one, str) for one in verdict.added)
        return f"not in {count} of {len(verdict.added)} layers ({'; '.join(refused)})"
    parts = {one for one in verdict.added if not isinstance(one, str)}
    kinds = {" + ".join(name if factor == 1 else f"{factor:g} * {name}" for name, factor in one) for one in parts}
    return ", ".join(sorted(kinds))


def _stored_or_tried(network: Network, fingerprint: str, wanted: str) -> Verdict:
    """The verdict stored for weights with that ``fingerprint`` (empty: none is stored), else that of a new trial."""
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
        str(model.config._attn_implementation), torch.__version__, transformers.__version__, _code(),
    )  # fmt: skip
    return folder() / FOLDER / f"{hashlib.blake2b(json.dumps(about).encode(), digest_size=16).hexdigest()}.json"


@functools.cache
def _code() -> str:
    """Of the engine: another version of it may do what this one cannot."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.blake2b(b"".join(file.read_bytes() for file in files), digest_size=16).hexdigest()


def _read(file: Path) -> Verdict | None:
    """None where there is none, or one that was damaged."""
    try:
        data: dict[str, Any] = json.loads(file.read_text("utf-8"))
        added = tuple(one if isinstance(one, str) else tuple((str(n), float(f)) for n, f in one) for one in data.pop("added"))
        data |= {key: tuple(data[key]) for key in ("reasons", "windows")}
        return Verdict(**data, added=added)
    except (OSError, ValueError, TypeError, KeyError):
        return None

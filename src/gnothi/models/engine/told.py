"""The verdict of a trial, and what a person is told of it: in a run's record, by ``gnothi list models`` and in a warning."""

from __future__ import annotations

import logging

from gnothi.errors import InvalidSetting
from gnothi.models.engine.kept import verdict_for
from gnothi.models.engine.passes import Network
from gnothi.models.engine.trial import Verdict, settle
from gnothi.models.settings import Attention

log = logging.getLogger("gnothi.opening")


def verdict_of(network: Network, wanted: Attention, fingerprint: str) -> Verdict:
    """The fastest path that a trial found right."""
    verdict = verdict_for(network, fingerprint, wanted, settle)
    if wanted not in ("auto", verdict.path):
        raise InvalidSetting(
            f"setting 'model.attention': got {wanted!r}, which this model does not support ({'; '.join(verdict.reasons)}); "
            "use 'auto'."
        )
    return verdict


def told(network: Network, verdict: Verdict, wanted: Attention) -> dict[str, str]:
    """What a run records of it, and `gnothi list models NAME` shows."""
    why = "; ".join(verdict.reasons)
    if verdict.path == "plain" and wanted == "auto":
        log.warning("%s is slow here: every token costs a pass over the whole text (%s).", type(network.model).__name__, why)
    windows = f", windows of {', '.join(map(str, verdict.windows))} made small" if verdict.windows else ""
    limit = network.frequencies.limit
    found = {
        "attention_reason": "by setting" if wanted != "auto" else why,
        "attention_implementation": "eager" if verdict.eager else "",
        "prompts_together": "" if verdict.together else "no",
        "trial": f"{verdict.path} equals plain passes in {verdict.layers} layers{windows}" if verdict.path != "plain" else "",
        "frequencies": f"of short texts up to {limit} tokens, of long ones beyond" if limit else "",
        "states": f"none: {verdict.stateless}" if verdict.stateless else "",
        "ffn": "" if verdict.stateless else _ffn(verdict),
    }
    return {key: value for key, value in found.items() if value}


def _ffn(verdict: Verdict) -> str:
    """What the site ``ffn`` is, where it is not simply one module's output in every layer."""
    refused = sorted({one for one in verdict.added if isinstance(one, str)})
    if refused:
        count = sum(isinstance(one, str) for one in verdict.added)
        return f"not in {count} of {len(verdict.added)} layers ({'; '.join(refused)})"
    parts = {one for one in verdict.added if not isinstance(one, str)}
    kinds = {" + ".join(name if factor == 1 else f"{factor:g} * {name}" for name, factor in one) for one in parts}
    return ", ".join(sorted(kinds))

"""The metadata of a model behind an API: how requests are made, what was left out and why, what its numbers are worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gnothi.models.remote.features import BY_SETTING, Features
from gnothi.models.remote.refusals import PREFILL
from gnothi.models.remote.requests import RANDOM_SEED, Format
from gnothi.models.remote.settings import RemoteSettings
from gnothi.models.remote.thinking_fields import as_text, sets_thinking
from gnothi.models.remote.window import Sizes

NOT_OWN = "those of greedy replies are not the model's own"


def numbers_count(features: Features, temperature: float) -> bool:
    """Whether log-probabilities of replies at a temperature are those of the model, which signals are about."""
    if temperature == 0:
        return features.greedy
    return features.numbers != "after" or temperature == 1


def described(
    features: Features,
    settings: RemoteSettings,
    format: Format,
    without: Mapping[str, str],
    thoughts: str,
    lacking: Mapping[str, int],
    floors: int,
    sizes: Sizes,
) -> dict[str, str]:
    """The metadata by key, in words. Keys without a value are left out."""
    left_out = {name: why for name, why in without.items() if name not in (PREFILL, RANDOM_SEED)}
    answer_so_far = "continued" if not format.chat or not (PREFILL in without or format.thinks) else "told"
    entries: dict[str, str] = {
        "endpoint": features.endpoint,
        "server": features.owner,
        "thinking": _thinking(features, settings, format, thoughts),
        "answer_so_far": answer_so_far,
        "without": ", ".join(sorted(left_out)),
        "why": "; ".join(f"{name}: {why}" for name, why in sorted(left_out.items())),
        "begun_replies": without.get(PREFILL, "").replace(BY_SETTING, ""),
        "log_probabilities": _numbers(features, Counter(lacking), floors),
        "window": f"{features.window} tokens" if features.window else "",
        "prompts_cut": f"it seems to cut prompts: the server counted far fewer tokens than texts have, in {sizes.cut} replies"
        if sizes.cut
        else "",
        "headers": ", ".join(one.partition("=")[0].strip() for one in settings.headers),
        "query": ", ".join(one.partition("=")[0].strip() for one in settings.query),
    }
    return {key: value for key, value in entries.items() if value}


_SAYS_LITTLE = frozenset(
    {"model", "base_url", "endpoint", "server", "answer_so_far", "begun_replies", "without", "window", "prompts_cut"}
    | {"headers", "query"}
)
"""Keys that a person who reads an answer does not need."""
USUAL = "taken before the temperature"


def remarks(models: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A line for each thing worth knowing about requests to the models (``Budget.models``)."""
    lines = []
    for model, metadata in models.items():
        for key, value in metadata.items():
            if key not in _SAYS_LITTLE and value != USUAL:
                what = "left out" if key == "why" else key.replace("_", " ")
                lines.append(f"{model}: {what}: {value}")
    return lines


def warnings(models: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A line for each thing that may make answers worse than they look."""
    return [f"{model}: {metadata['prompts_cut']}" for model, metadata in models.items() if "prompts_cut" in metadata]


def _thinking(features: Features, settings: RemoteSettings, format: Format, thoughts: str) -> str:
    thinking = settings.thinking
    how = f" by {as_text(format.thinking)}" if format.thinking else ""
    seen = f"thoughts in {thoughts}, {settings.thinking_tokens:,} tokens of room" if thoughts else "none was seen"
    if thoughts or thinking != "off":
        if sets_thinking(settings.more()):
            return f"as model.extra says, no other way was tried: {seen}"
        if not format.chat:
            chat = ", or use model.endpoint=chat" if settings.endpoint == "completions" else ""
            return (
                f"cannot be set to {thinking} on the completions endpoint, which has no field for it: {seen}. Give a field of "
                f"the server's own in model.extra{chat}"
            )
        if thinking == "off" and not features.alone:
            return f"was not switched off, since the trial showed no thought: {seen}. Give the server's field in model.extra"
        return f"cannot be switched off: {seen}" if thinking == "off" else f"{thinking}{how}: {seen}"
    return f"switched off{how}; left alone, {features.alone} shows thoughts" if features.alone else ""


def _numbers(features: Features, lacking: Counter[str], floors: int) -> str:
    notes = []
    if features.logprobs and not features.greedy:
        notes.append(f"{NOT_OWN}, so they are not used")
    if features.numbers == "after":
        notes.append("taken after the temperature: used of greedy replies and at temperature 1 alone")
    elif features.numbers == "before":
        notes.append(USUAL)
    notes += [f"missing in {count} of the replies ({why})" for why, count in lacking.most_common(3)]
    if floors:
        notes.append(f"a bound in their place for {floors} of the tokens, counted as -9999")
    return "; ".join(notes)

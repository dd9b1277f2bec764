"""What is told of a model behind an API: how it is asked, what was left out and why, what its numbers are worth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from gnothi.models.remote.features import BY_SETTING, Features
from gnothi.models.remote.refusals import PREFILL
from gnothi.models.remote.requests import RANDOM_SEED, Format
from gnothi.models.remote.settings import RemoteSettings
from gnothi.models.remote.thinking_fields import shown, told_by_hand
from gnothi.models.remote.window import Sizes


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
    """By key, in words; what there is nothing to say of is left out."""
    left_out = {name: why for name, why in without.items() if name not in (PREFILL, RANDOM_SEED)}
    begun = "continued" if not format.chat or not (PREFILL in without or format.thinks) else "told"
    told: dict[str, str] = {
        "endpoint": features.endpoint,
        "server": features.owner,
        "thinking": _thinking(features, settings, format, thoughts),
        "answer_so_far": begun,
        "without": ", ".join(sorted(left_out)),
        "why": "; ".join(f"{name}: {why}" for name, why in sorted(left_out.items())),
        "begun_replies": without.get(PREFILL, "").replace(BY_SETTING, ""),
        "log_probabilities": _numbers(features, Counter(lacking), floors),
        "window": f"{features.window} tokens" if features.window else "",
        "prompts_cut": f"the server counted far fewer tokens than such texts have, {sizes.cut} times: it seems to cut prompts"
        if sizes.cut
        else "",
        "headers": ", ".join(one.partition("=")[0].strip() for one in settings.headers),
        "query": ", ".join(one.partition("=")[0].strip() for one in settings.query),
    }
    return {key: value for key, value in told.items() if value}


_SAYS_LITTLE = frozenset(
    {"model", "base_url", "endpoint", "server", "answer_so_far", "begun_replies", "without", "window", "prompts_cut"}
    | {"headers", "query"}
)
"""What a person who reads an answer need not be told."""
USUAL = "taken before the temperature"


def remarks(asked: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A line for each thing worth knowing of how models were asked (``Budget.asked``)."""
    lines = []
    for model, told in asked.items():
        for key, said in told.items():
            if key not in _SAYS_LITTLE and said != USUAL:
                what = "left out" if key == "why" else key.replace("_", " ")
                lines.append(f"{model}: {what}: {said}")
    return lines


def warnings(asked: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A line for each thing that may make answers worse than they look."""
    return [f"{model}: {told['prompts_cut']}" for model, told in asked.items() if "prompts_cut" in told]


def _thinking(features: Features, settings: RemoteSettings, format: Format, thoughts: str) -> str:
    asked = settings.thinking
    how = f" by {shown(format.thinking)}" if format.thinking else ""
    if thoughts:
        seen = f"thoughts in {thoughts}"
        if told_by_hand(settings.more()):
            return f"as model.extra says, no other way was tried: {seen}, {settings.thinking_tokens:,} tokens of room"
        if asked == "off":
            return f"cannot be switched off: {seen}, {settings.thinking_tokens:,} tokens of room"
        return f"{asked}{how}: {seen}, {settings.thinking_tokens:,} tokens of room"
    if asked != "off":
        return f"{asked}{how}: none was seen"
    return f"switched off{how}; left alone, {features.alone} shows thoughts" if features.alone else ""


def _numbers(features: Features, lacking: Counter[str], floors: int) -> str:
    told = []
    if features.logprobs and not features.greedy:
        told.append("those of greedy replies are not the model's own, so they are not used")
    if features.numbers == "after":
        told.append("taken after the temperature: used of greedy replies and at temperature 1 alone")
    elif features.numbers == "before":
        told.append(USUAL)
    told += [f"missing in {count} of the replies ({why})" for why, count in lacking.most_common(3)]
    if floors:
        told.append(f"a bound in their place for {floors} of the tokens, counted as -9999")
    return "; ".join(told)

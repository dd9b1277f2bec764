"""Whether a checkpoint holds the weights of its model: all of them, no others, each in the shape that the configuration tells.

transformers puts random numbers where a weight is missing, and leaves out what it has no place for. Here both are refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gnothi.errors import ModelUnavailable
from gnothi.libraries import listed, reports

# What was once saved and is now computed from the configuration.
_COMPUTED = (
    r"inv_freq|rotary_emb\..+|(freqs|cos|sin)_(cis|cached)|position_ids|relative_position_index|masked_bias|causal_mask"
    r"|attn_mask|(attn|attention)\.bias|num_batches_tracked|_extra_state"
)
# Parts beside a language model that it says nothing by: heads that guess several tokens ahead or judge a reply, and what sees
# or hears.
_BESIDE = (
    r"mtp(_\w+)?\..+|(medusa|eagle)\w*\..+|(v|value)_head\..+"
    r"|(visual|vision|image|video|audio|speech)(_\w+)?\..+|multi_modal_projector\..+|mm_projector\..+|image_newline"
)
# What quantised weights come with; the library takes what it needs of it.
_QUANTISED = (
    r"(\w*scales?|\w*scale_inv|\w*zeros?|\w*zero_point|g_idx|absmax|\w*quant_\w+|SCB|weight_format|weight_shape)(\..+)?"
)
_PARTS, _WHY = re.compile(r"^(\S.*?) +\| CONVERSION", re.MULTILINE), re.compile(r"^\w*Error: (.{,200})", re.MULTILINE)
_EARLIER = re.compile(rf"(^|\.)({_COMPUTED})$")
_OTHERS = re.compile(rf"^(\w+\.)?({_BESIDE})$")
_STATE = re.compile(rf"(^|[._])({_QUANTISED})$")


@dataclass(frozen=True, slots=True)
class Loading:
    """What transformers reports of a loading: names of weights, reshaped ones with the shape in the files, then ours."""

    missing: Collection[str]
    unexpected: Collection[str]
    reshaped: Collection[tuple[str, tuple[int, ...], tuple[int, ...]]]

    def check(self, model: Any, name: str, base: str = "") -> list[str]:
        """The weights of parts beside the language model, which it does without.

        Raises ModelUnavailable for a ``model`` that is not all in its files, or not all of what they hold. Parts that were
        taken out of it since need no weights. ``base`` is what ``name`` is an adapter of."""
        quantised = getattr(model.config, "quantization_config", None) is not None
        missing = sorted(key for key in self.missing if _is_there(model, key) and not _EARLIER.search(key))
        extra = sorted(
            key
            for key in self.unexpected
            if not (_EARLIER.search(key) or _OTHERS.search(key) or (quantised and _STATE.search(key)))
        )
        reshaped = sorted(one for one in self.reshaped if _is_there(model, one[0]))
        problems = []
        if missing:
            problems.append(f"lacks {listed(missing)}, in whose place the library would put random numbers")
        if reshaped:
            shapes = [f"{key} ({_shape(theirs)}, expected {_shape(ours)})" for key, theirs, ours in reshaped]
            problems.append(f"has {listed(shapes)} in another shape than the configuration tells")
        if extra:
            problems.append(f"holds {listed(extra)}, for which the model of its configuration has no place")
        if problems:
            whose = f"the adapter's base is {base}, whose" if base else "its"
            remedy = "Copy or download the model again, all files of one version."
            if extra and not missing and not reshaped:
                remedy += (
                    " If it is meant so, load it with transformers and save it anew (save_pretrained): that leaves them out."
                )
            raise ModelUnavailable(
                f"cannot load model {name!r}: {whose} checkpoint {'; it '.join(problems)}. "
                f"Expected the weights of a {type(model).__name__}, each once. {remedy}"
            )
        return sorted(key for key in self.unexpected if _OTHERS.search(key))


def read(kind: Any, source: str, arguments: Mapping[str, Any]) -> tuple[Any, Loading]:
    """The model of a class ``kind`` of transformers in a folder or on the hub, and the report of its loading."""
    with reports() as messages:
        try:
            model, info = kind.from_pretrained(source, output_loading_info=True, ignore_mismatched_sizes=True, **arguments)
        except RuntimeError as error:
            # The library says no more than that it has printed a report.
            parts = _PARTS.findall(messages[-1]) if messages else []
            if not parts:
                raise
            why = _WHY.findall(messages[-1])[-1:]
            raise RuntimeError(
                f"its checkpoint holds {listed(parts)} in parts that do not fit together ({', '.join(why)}). "
                "Copy or download it again."
            ) from error
    return model, Loading(info["missing_keys"], info["unexpected_keys"], info["mismatched_keys"])


def damaged(folder: Path) -> str:
    """The first file of weights in a folder that is not whole; empty where there is none."""
    from safetensors import SafetensorError, safe_open

    for file in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(file, "pt"):
                pass
        except (SafetensorError, OSError):
            return file.name
    return ""


def _is_there(model: Any, key: str) -> bool:
    owner, _, own = key.rpartition(".")
    try:
        return hasattr(model.get_submodule(owner), own)
    except AttributeError:
        return False


def _shape(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes)) or "one number"

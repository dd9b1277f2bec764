"""What of a model is trained, and how it is held in memory meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from gnothi.errors import InvalidSetting
from gnothi.fields import setting
from gnothi.models.engine.loading import load, no_progress_bars

if TYPE_CHECKING:
    from gnothi.training.finetuning import Origin

Adapter = Literal["lora", "full"]
Kind = Literal["CAUSAL_LM", "SEQ_2_SEQ_LM"]
"""PEFT's names of what a model does."""
EVERY = ("all-linear",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Settings of every training of a language model."""

    adapter: Adapter = setting("lora", "Train a low-rank adapter, which is merged at the end, or all weights.")
    rank: int = setting(16, "Rank of the adapter.", at_least=1)
    alpha: float | None = setting(None, "Scale of the adapter (none: twice its rank).", at_least=0.0)
    targets: tuple[str, ...] = setting(EVERY, "Layers that get an adapter, by the ends of their names, as in q_proj,v_proj.")
    gradient_checkpointing: Literal["auto", "on", "off"] = setting(
        "auto", "Compute activations again instead of keeping them: less memory, a third more time (auto: on a GPU)."
    )

    @property
    def scale(self) -> float:
        return 2.0 * self.rank if self.alpha is None else self.alpha

    def checkpoints(self, model: Any) -> bool:
        """Whether activations are computed again."""
        return self.gradient_checkpointing == "on" or (self.gradient_checkpointing == "auto" and model.device.type != "cpu")


def check(tuning: Tuning, origin: Origin) -> None:
    """Raise InvalidSetting for weights that cannot be trained."""
    if tuning.adapter == "full" and origin.to_train.quantize != "off":
        raise InvalidSetting(
            f"setting 'adapter': got full with model.quantize={origin.to_train.quantize}, expected lora: weights of a few bits "
            "cannot be trained themselves."
        )


def adapted(base: Any, tuning: Tuning, seed: int, kind: Kind = "CAUSAL_LM") -> Any:
    """The model with what is to be trained of it: a new adapter on the layers that are meant, or all of it.

    Raises InvalidSetting for layers that it does not have."""
    from transformers import set_seed

    set_seed(seed)
    if tuning.adapter == "full":
        return base
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training

    if getattr(base, "is_quantized", False):
        base = prepare_model_for_kbit_training(base, use_gradient_checkpointing=tuning.checkpoints(base))
    targets = "all-linear" if tuning.targets == EVERY else list(tuning.targets)
    config = LoraConfig(r=tuning.rank, lora_alpha=tuning.scale, target_modules=targets, task_type=kind)
    try:
        return get_peft_model(base, config)
    except ValueError as error:
        ends = sorted({name.rpartition(".")[2] for name, one in base.named_modules() if type(one).__name__.endswith("Linear")})
        raise InvalidSetting(
            f"setting 'targets': got {', '.join(tuning.targets)}, expected names of this model's layers: {', '.join(ends)}."
        ) from error


def merged(model: Any, origin: Origin, folder: Path) -> Any:
    """The model with its adapter in its weights. One that was quantised meanwhile is loaded anew in full for it: what is merged
    into four bits is rounded away. ``folder`` holds the adapter."""
    if not getattr(model.get_base_model(), "is_quantized", False):
        return model.merge_and_unload()
    from peft import PeftModel

    plain, _, _ = load(origin.source, origin.name, replace(origin.to_train, quantize="off"))
    return PeftModel.from_pretrained(plain, str(folder)).merge_and_unload()


def restore(model: Any, folder: Path, adapter: Adapter) -> None:
    """Take the trained weights saved in ``folder``."""
    if adapter == "lora":
        from peft import load_peft_weights, set_peft_model_state_dict

        set_peft_model_state_dict(model, load_peft_weights(str(folder), device=str(model.device)))
    else:
        with no_progress_bars():
            model.load_state_dict(type(model).from_pretrained(folder, dtype=model.dtype).state_dict())

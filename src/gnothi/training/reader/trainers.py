"""The libraries' trainers with a validation of ours: TRL's SFT for causal models, Seq2SeqTrainer for sequence-to-sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformers import DataCollatorForSeq2Seq, PrinterCallback, ProgressCallback, Seq2SeqTrainer, Seq2SeqTrainingArguments
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from datasets import Dataset
from gnothi.training.reader.settings import ReaderTraining

Validation = Callable[[Any], Mapping[str, float]]
"""From the model to the figures of a validation."""
BEST = "score"
"""The figure that the best checkpoint is chosen by."""


class _Validating:
    """In place of the library's evaluation: ``validate``."""

    validate: Validation

    def evaluate(self, *_: Any, **__: Any) -> dict[str, float]:
        trainer: Any = self
        model = trainer.accelerator.unwrap_model(trainer.model)
        figures = {f"eval_{name}": value for name, value in self.validate(model).items()}
        model.eval()  # so that the library files the figures under evaluation; a training step switches back
        trainer.log(dict(figures))
        trainer.control = trainer.callback_handler.on_evaluate(trainer.args, trainer.state, trainer.control, figures)
        return figures

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """None: the folder says what it is."""


class CausalTrainer(_Validating, SFTTrainer):
    """The loss is on the answer alone: the labels of everything before it are -100."""


class EncoderDecoderTrainer(_Validating, Seq2SeqTrainer):
    """The encoder reads the prompt, the decoder's loss is on the answer."""


def make_trainer(
    model: Any,
    tokenizer: Any,
    rows: list[tuple[list[int], list[int]]],
    settings: ReaderTraining,
    out: Path,
    validate: Validation,
    callbacks: list[Any],
) -> Any:
    """A trainer over ``rows``, which are token ids and labels; its checkpoints go to ``out``."""
    several = bool(getattr(model.config, "is_encoder_decoder", False))
    cpu = model.device.type == "cpu"
    pass_rows = settings.rows or settings.batch
    options: dict[str, Any] = {
        "output_dir": str(out),
        "max_steps": settings.steps,
        "per_device_train_batch_size": pass_rows,
        "gradient_accumulation_steps": settings.batch // pass_rows,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": "linear",
        "warmup_steps": round(settings.warmup * settings.steps),
        "seed": settings.seed,
        "use_cpu": cpu,
        "bf16": not cpu,
        "gradient_checkpointing": not cpu,
        "eval_strategy": "steps",
        "eval_steps": settings.evaluate_every,
        "save_steps": settings.evaluate_every,
        "save_total_limit": 2,  # the newest and the one before, beside the best
        "metric_for_best_model": BEST,
        "greater_is_better": True,
        "logging_steps": 1,
        "report_to": "none",
        "disable_tqdm": True,
    }
    data = Dataset.from_dict({"input_ids": [ids for ids, _ in rows], "labels": [labels for _, labels in rows]})
    trainer: Any
    if several:
        arguments: Any = Seq2SeqTrainingArguments
        trainer = EncoderDecoderTrainer(
            model=model,
            args=arguments(**options),
            train_dataset=data,
            eval_dataset=data.select(range(1)),  # the libraries ask for one; ``validate`` has its own
            data_collator=DataCollatorForSeq2Seq(tokenizer, model=model, label_pad_token_id=-100),
            callbacks=callbacks,
        )
    else:
        trainer = CausalTrainer(
            model=model,
            args=SFTConfig(**options, max_length=None, packing=False),
            train_dataset=data,
            eval_dataset=data.select(range(1)),
            processing_class=tokenizer,
            callbacks=callbacks,
        )
    trainer.validate = validate
    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
    return trainer

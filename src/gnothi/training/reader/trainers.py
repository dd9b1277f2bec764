"""The libraries' trainers with a validation of ours: TRL's SFT for causal models, Seq2SeqTrainer for sequence-to-sequence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from datasets import Dataset
from gnothi.training import processes
from gnothi.training.finetuning import Validating, arguments, silent
from gnothi.training.reader.stages import ReaderTraining

BEST = "score"
"""The figure that the best checkpoint is chosen by."""


class CausalTrainer(Validating, SFTTrainer):
    """The loss is on the answer alone: the labels of everything before it are -100."""


class EncoderDecoderTrainer(Validating, Seq2SeqTrainer):
    """The encoder reads the prompt, the decoder's loss is on the answer."""


def make_trainer(
    model: Any,
    tokenizer: Any,
    rows: list[tuple[list[int], list[int]]],
    settings: ReaderTraining,
    out: Path,
    validate: Callable[[Any], Mapping[str, float]],
    callbacks: list[Any],
) -> Any:
    """A trainer over ``rows``, which are token ids and labels; its checkpoints go to ``out``. ``validate``: from the model to
    the figures of a validation."""
    several = bool(getattr(model.config, "is_encoder_decoder", False))
    steps = settings.in_all(len(rows))
    own = processes.share(settings.batch, "setting 'batch'")
    pass_rows = min(settings.rows or own, own)
    options: dict[str, Any] = {
        **arguments(out, model, settings, steps, BEST),
        "per_device_train_batch_size": pass_rows,
        "gradient_accumulation_steps": own // pass_rows,
        "warmup_steps": round(settings.warmup * steps),
        "gradient_checkpointing": settings.checkpoints(model),
    }
    data = Dataset.from_dict({"input_ids": [ids for ids, _ in rows], "labels": [labels for _, labels in rows]})
    trainer: Any
    if several:
        untyped: Any = Seq2SeqTrainingArguments
        trainer = EncoderDecoderTrainer(
            model=model,
            args=untyped(**options),
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
    return silent(trainer)

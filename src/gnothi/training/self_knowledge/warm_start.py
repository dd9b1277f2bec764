"""The short supervised stage before reinforcement learning: replies must occur before they can be rewarded.

The paper has no such stage; a model that already replies in either form does without (``warm_start=none``).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi.training.finetuning import silent
from gnothi.training.self_knowledge.answers import Familiar
from gnothi.training.self_knowledge.reward import NO, YES
from gnothi.training.self_knowledge.settings import TrainingSettings, WarmStart

if TYPE_CHECKING:
    from gnothi.training.self_knowledge.policy import Prompts


def replies(asked: Sequence[Familiar], kind: WarmStart, random_: random.Random) -> list[tuple[Familiar, str]]:
    """What the model is shown: by familiarity (``labels``), or at random (``format``).

    A Yes goes on with an answer that the model itself gave, so that no fact is taught: a right one, with ``labels``.
    """
    shown = []
    for one in asked:
        says_yes = one.known if kind == "labels" else random_.random() < 0.5
        answer = one.answers[one.correct.index(True)] if kind == "labels" and one.known else one.answers[0]
        shown.append((one, YES.format(answer=answer) if says_yes else NO))
    return shown


def order(asked: Sequence[Familiar], count: int, balance: bool, random_: random.Random) -> list[Familiar]:
    """``count`` questions: one shuffled epoch after the other. Balanced, every second one is known, and the rarer kind comes
    again sooner."""
    if not balance:
        return list(islice(_epochs(asked, random_), count))
    kinds = [[one for one in asked if one.known is known] for known in (True, False)]
    streams = [_epochs(kind, random_) for kind in kinds if kind]
    return list(islice(chain.from_iterable(zip(*streams, strict=True)), count))


def _epochs(asked: Sequence[Familiar], random_: random.Random) -> Iterator[Familiar]:
    while True:
        yield from random_.sample(asked, len(asked))


def run(model: Any, prompts: Prompts, asked: Sequence[Familiar], settings: TrainingSettings, scratch: Path) -> None:
    """Train ``model`` where it stands. The same arguments give the same weights."""
    from accelerate import PartialState
    from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments

    from datasets import Dataset

    random_ = random.Random(f"{settings.seed}/warm start")
    chosen = order(asked, settings.warm_start_steps * settings.warm_start_batch, settings.balance, random_)
    rows = [prompts.with_reply(one.asked, reply) for one, reply in replies(chosen, settings.warm_start, random_)]
    cpu = model.device.type == "cpu"
    share = max(1, settings.warm_start_batch // PartialState(cpu=cpu).num_processes)
    together = min(settings.rows or share, share)
    arguments: Any = TrainingArguments
    trainer: Any = Trainer(
        model=model,
        args=arguments(
            output_dir=str(scratch),
            max_steps=settings.warm_start_steps,
            per_device_train_batch_size=together,
            gradient_accumulation_steps=max(1, share // together),
            gradient_checkpointing=settings.checkpoints(model),
            learning_rate=settings.warm_start_rate,
            lr_scheduler_type="linear",
            seed=settings.seed,
            use_cpu=cpu,
            bf16=not cpu,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            logging_strategy="no",
        ),
        train_dataset=Dataset.from_dict({"input_ids": [ids for ids, _ in rows], "labels": [labels for _, labels in rows]}),
        data_collator=DataCollatorForSeq2Seq(prompts.tokenizer, label_pad_token_id=-100),
    )
    silent(trainer).train()

"""Training from sampled answers to a model: split, warm start, GRPO, merge. Any stage may be killed; the next call goes on.

The folder, from the first to the last: ``warm-start/`` (the adapter, or the model, after the supervised stage),
``checkpoints/``, ``metrics.jsonl`` and ``curves.png``, the model in transformers format, ``training.json``.
"""

from __future__ import annotations

import math
import random
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi.errors import InvalidInput, TrainingCollapsed
from gnothi.models.engine.loading import Declaration, load, no_progress_bars
from gnothi.models.rendering import make_renderer
from gnothi.signals.kinds.self_report import SelfReport
from gnothi.stats.auroc import auroc
from gnothi.stats.probabilities import balanced_threshold
from gnothi.training.curve import Curve
from gnothi.training.finetuning import (
    CHECKPOINTS,
    Origin,
    adapted,
    read_header,
    require_libraries,
    restore,
    write_header,
    write_model,
)
from gnothi.training.self_knowledge import warm_start
from gnothi.training.self_knowledge.answers import Familiar
from gnothi.training.self_knowledge.figures import draw_curves
from gnothi.training.self_knowledge.reward import Correctness, judge, reward
from gnothi.training.self_knowledge.settings import TrainingSettings

if TYPE_CHECKING:
    from gnothi.training.self_knowledge.policy import Prompts

WARM_START = "warm-start"
BEST = "validation_reward"

Figures = dict[str, Any]
"""A line of ``metrics.jsonl``: ``step`` with what TRL says of a training step, or with the figures of ``policy.assess``."""


def split(asked: Sequence[Familiar], settings: TrainingSettings) -> tuple[list[Familiar], list[Familiar]]:
    """Training and validation questions, known and unknown in like shares. A question goes where it goes by itself with all the
    sentences it is shown. Raises InvalidInput without two of both."""
    random_ = random.Random(f"{settings.seed}/split")
    held: set[str] = set()
    alone = [one for one in asked if one.sentence is None]
    for known in (True, False):
        names = [one.question.id for one in alone if one.known is known]
        if len(names) < 2:
            raise InvalidInput(
                f"of {len(alone)} training questions the model knows {sum(one.known for one in alone)}, expected at least 2 "
                "that it knows and 2 that it does not: there is nothing to tell apart. Give other or more questions."
            )
        held.update(random_.sample(names, min(len(names) - 1, max(1, round(len(names) * settings.validation)))))
    training = [one for one in asked if one.question.id not in held]
    return training, [one for one in asked if one.question.id in held]


def train(
    out: Path,
    origin: Origin,
    asked: Sequence[Familiar],
    settings: TrainingSettings,
    correct: Correctness,
    on_line: Callable[[Figures], None] | None = None,
) -> dict[str, Any]:
    """Train in folder ``out``, which then holds the model; the result is its header.

    ``on_line`` hears of every line of the metrics. Raises TrainingCollapsed, MissingDependency, ModelUnavailable, InvalidInput.
    """
    if (done := read_header(out)) is not None:
        return done
    training, validation = split(asked, settings)
    require_libraries("training self-knowledge")
    from gnothi.training.self_knowledge.policy import Prompts

    base, tokenizer, declared = load(origin.source, origin.name, origin.to_train)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    prompts = Prompts(tokenizer, make_renderer(origin.settings.renderer, tokenizer, declared.renderer))
    prompts.first_tokens()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of the libraries to each other
        model = adapted(base, settings.adapter, settings.rank, settings.seed)
        _warm(out, model, prompts, training, settings)
        best, history = _Reinforcement(out, model, prompts, training, validation, settings, correct, on_line)()
        restore(model, out / CHECKPOINTS / f"checkpoint-{best}", settings.adapter)
        return _finish(out, origin, model, prompts, declared, validation, settings, correct, best, history)


# --- the supervised stage ------------------------------------------------------------------------------------------


def _warm(out: Path, model: Any, prompts: Prompts, training: Sequence[Familiar], settings: TrainingSettings) -> None:
    """The supervised stage, which is done once."""
    from accelerate import PartialState

    state = PartialState(cpu=model.device.type == "cpu")
    done, temporary = out / WARM_START, out / f".{WARM_START}"
    ready = done.is_dir()
    state.wait_for_everyone()
    if not ready:
        if settings.warm_start != "none":
            warm_start.run(model, prompts, training, settings, temporary, model.device.type == "cpu")
        if state.is_main_process:
            shutil.rmtree(temporary, ignore_errors=True)
            with no_progress_bars():
                model.save_pretrained(temporary)
            temporary.rename(done)
        state.wait_for_everyone()
    # From the disk even now: what goes on is what a killed training would go on with.
    restore(model, done, settings.adapter)


# --- reinforcement learning ----------------------------------------------------------------------------------------


def collapsed(history: Sequence[Mapping[str, Any]], after: int) -> str | None:
    """The one reply that each of the last ``after`` validations got to everything, where sampling hardly ever gives another one
    (P("Yes") of the known at most .02, of the unknown at least .98): nothing is left to learn from.

    One reply to everything alone is no collapse: on the way there the more frequent reply often comes first.
    """
    last = history[-after:]
    if len(last) < after:
        return None
    if all(line["no"] == 1 and line["yes_known"] <= 0.02 for line in last):
        return "No"
    if all(line["no"] == line["neither"] == 0 and line["yes_unknown"] >= 0.98 for line in last):
        return "Yes"
    return "neither Yes nor No" if all(line["neither"] == 1 for line in last) else None


class _Reinforcement:
    """One stage of GRPO in ``out``: from the newest checkpoint or the start to the end. Calling it gives the step of the best
    checkpoint and all lines of the metrics."""

    def __init__(
        self,
        out: Path,
        model: Any,
        prompts: Prompts,
        training: Sequence[Familiar],
        validation: Sequence[Familiar],
        settings: TrainingSettings,
        correct: Correctness,
        on_line: Callable[[Figures], None] | None,
    ) -> None:
        self.out, self.model, self.prompts, self.settings, self.correct = out, model, prompts, settings, correct
        self.training, self.validation = training, validation
        self.curve = Curve(out, BEST, settings.patience, on_line)
        self.writes = False

    def __call__(self) -> tuple[int, list[Figures]]:
        trainer = self._trainer(self.out / CHECKPOINTS)
        self.writes = trainer.is_world_process_zero()
        self.curve.draw(trainer, self.settings.steps, self.writes)
        return self.curve.best_step, self.curve.lines

    def _trainer(self, folder: Path) -> Any:
        from accelerate import PartialState
        from transformers import PrinterCallback, ProgressCallback
        from trl.trainer.grpo_config import GRPOConfig

        from datasets import Dataset
        from gnothi.training.self_knowledge.grpo import SkillTrainer

        settings, cpu = self.settings, self.model.device.type == "cpu"
        processes = PartialState().num_processes
        rows = min(settings.rows or math.inf, settings.questions * settings.replies // processes)
        args = GRPOConfig(
            output_dir=str(folder),
            max_steps=settings.steps,
            per_device_train_batch_size=int(rows),
            per_device_eval_batch_size=settings.replies,
            gradient_accumulation_steps=settings.questions * settings.replies // (int(rows) * processes),
            num_generations=settings.replies,
            max_completion_length=settings.reply_tokens,
            temperature=settings.temperature,
            learning_rate=settings.learning_rate,
            lr_scheduler_type="linear",
            beta=settings.kl,
            epsilon=settings.clip,
            loss_type="grpo",
            shuffle_dataset=False,  # the epochs are shuffled below: TRL's sampler resumes right only within its first
            seed=settings.seed,
            use_cpu=cpu,
            bf16=not cpu,
            gradient_checkpointing=not cpu,
            eval_strategy="steps",
            eval_steps=settings.evaluate_every,
            save_steps=settings.evaluate_every,
            save_total_limit=2,  # the newest and the one before, beside the best
            metric_for_best_model=BEST,
            greater_is_better=True,
            logging_steps=1,
            report_to="none",
            disable_tqdm=True,
        )
        random_ = random.Random(f"{settings.seed}/order")
        chosen = warm_start.order(self.training, settings.steps * settings.questions, settings.balance, random_)
        listener = self.curve.listener(_TRAINING_FIGURES, _FIGURES, self._after_validation)
        trainer = SkillTrainer(
            model=self.model,
            reward_funcs=[self._rewards(chosen)],
            args=args,
            train_dataset=self._dataset(Dataset, chosen),
            eval_dataset=self._dataset(Dataset, self.validation),
            processing_class=self.prompts.tokenizer,
            callbacks=[listener],
            rule=settings.rule,
            prompts=self.prompts,
            validate=self._validate,
        )
        for callback in (PrinterCallback, ProgressCallback):
            trainer.remove_callback(callback)
        return trainer

    def _dataset(self, dataset: Any, asked: Sequence[Familiar]) -> Any:
        prompts = [self.prompts.text(one.question, one.asked.passages) for one in asked]
        return dataset.from_dict({"prompt": prompts, "name": [one.asked.name for one in asked]})

    def _rewards(self, asked: Sequence[Familiar]) -> Callable[..., list[float]]:
        by_name = {one.asked.name: one for one in asked}

        def table(completions: Sequence[str], name: Sequence[str], **_: Any) -> list[float]:
            found = [by_name[one] for one in name]
            return [
                reward(judge(text, one.question.answers, one.question.choices, self.correct), one.acc_rate)
                for text, one in zip(completions, found, strict=True)
            ]

        return table

    def _validate(self, model: Any) -> Figures:
        from gnothi.training.self_knowledge.policy import assess, reply_to

        asked = [one.asked for one in self.validation]
        return assess(reply_to(model, self.prompts, asked, self.settings.reply_tokens), self.validation, self.correct)

    def _after_validation(self) -> None:
        if self.writes:
            draw_curves(self.out, self.curve.lines)
        reply = collapsed(self.curve.validated, self.settings.collapse_after)
        if reply is not None and self.curve.validated[-1]["step"] > 0:
            raise TrainingCollapsed(
                f"training collapsed: for {self.settings.collapse_after} validations in a row the reply to every question was "
                f"{reply}, although the model knows some and others not. Train anew in another folder with a lower learning "
                f"rate (learning_rate, now {self.settings.learning_rate:g}), more or other warm start (warm_start, "
                f"warm_start_steps, now {self.settings.warm_start}, {self.settings.warm_start_steps}) or a weight on staying "
                f"close (kl=0.05). The curves are in {self.out}."
            )


_TRAINING_FIGURES = frozenset(("reward", "reward_std", "loss", "grad_norm", "learning_rate", "frac_reward_zero_std"))
_FIGURES = frozenset((BEST, "yes_known", "yes_unknown", "auroc", "refusal", "hallucination", "no", "neither"))


# --- the model -----------------------------------------------------------------------------------------------------


def _finish(
    out: Path,
    origin: Origin,
    final: Any,
    prompts: Prompts,
    declared: Declaration,
    validation: Sequence[Familiar],
    settings: TrainingSettings,
    correct: Correctness,
    best: int,
    history: Sequence[Figures],
) -> dict[str, Any]:
    """Put the model into the folder, file by file, ``config.json`` last; then the header."""
    from accelerate import PartialState

    from gnothi.training.self_knowledge.policy import assess, reply_to

    replies = reply_to(final, prompts, [one.asked for one in validation], settings.reply_tokens)
    figures = assess(replies, validation, correct)
    alone = [(yes, one) for yes, one in zip(replies.yes, validation, strict=True) if one.sentence is None]
    if settings.adapter == "lora":
        if "ref" in final.peft_config:  # with kl, what training started from
            final.delete_adapter("ref")
        final = final.merge_and_unload()
    thresholds = dict(declared.thresholds)
    uncertainties, missed = [1 - yes for yes, _ in alone], [not one.known for _, one in alone]
    # The other thresholds are the base model's: what it answers is hardly touched. This signal's reply is what was trained.
    thresholds[SelfReport.name] = round(balanced_threshold(uncertainties, missed), 3)
    header = {
        "model": origin.name,
        "questions": {"validation": len(validation), "known": sum(one.known for one in validation)},
        "from_memory": {"validation": len(alone), "auroc": auroc([yes for yes, _ in alone], [one.known for _, one in alone])},
        "steps": max(line["step"] for line in history),
        "best_step": best,
        "before": next(({key: line[key] for key in sorted(_FIGURES)} for line in history if line["step"] == 0), None),
        "after": {key: figures[key] for key in sorted(_FIGURES)},
        "threshold": thresholds[SelfReport.name],
    }
    if not PartialState().is_main_process:
        return header
    tasks = {} if declared.tasks is None else {"tasks": sorted(declared.tasks)}
    made = {"trained": "self-knowledge", "from": origin.name}
    write_model(out, final, prompts.tokenizer, {"renderer": declared.renderer, **tasks, "thresholds": thresholds, **made})
    draw_curves(out, history)
    write_header(out, header)
    return header

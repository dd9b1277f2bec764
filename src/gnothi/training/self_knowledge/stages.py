"""Training from sampled answers to a model: split, warm start, GRPO, merge. Any stage may be killed; the next call goes on.

The folder, from the first to the last: ``warm-start/`` (the adapter, or the model, after the supervised stage),
``checkpoints/``, ``metrics.jsonl`` and ``curves.png``, the model in transformers format, ``training.json``.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gnothi.errors import InvalidInput, TrainingCollapsed
from gnothi.models.engine.loading import Declaration, no_progress_bars
from gnothi.report.figures.drawing import save_figure
from gnothi.session.watch import SILENT, Watch
from gnothi.signals.kinds.self_report import SelfReport
from gnothi.stats.auroc import auroc
from gnothi.stats.probabilities import balanced_threshold
from gnothi.training import finetuning, processes
from gnothi.training.adapter import adapted, merged, restore
from gnothi.training.curve import BLUE, GREEN, RED, YELLOW, Curve, Panel, TrackedFigures, figure
from gnothi.training.finetuning import Origin, silent
from gnothi.training.self_knowledge.answers import Familiar
from gnothi.training.self_knowledge.reward import INDIFFERENT, NO, YES, Correctness, judge, reward
from gnothi.training.self_knowledge.settings import TrainingSettings, WarmStart

if TYPE_CHECKING:
    from gnothi.training.self_knowledge.policy import Prompts


FAMILIARITY = "familiarity.png"
PANELS = (
    Panel("reward", {"validation_reward": ("validation", BLUE)}, trained=("reward", "sampled")),
    Panel('P("Yes")', {"yes_known": ("known", GREEN), "yes_unknown": ("unknown", RED), "auroc": ("AUROC", BLUE)}, share=True),
    Panel(
        "rates",
        {"refusal": ("refusal (of known)", YELLOW), "hallucination": ("hallucination (Yes and wrong)", RED)},
        share=True,
    ),
)


def draw_familiarity(out: Path, rates: Sequence[float], n: int) -> None:
    """A histogram of acc_rate, one bar per possible value of n answers, with the familiarity at which Yes is worth as much
    as No. Raises MissingDependency without matplotlib."""
    drawn = figure(5.2, 3.2)
    axes = drawn.subplots()
    values, counts = np.unique(np.round(np.asarray(rates, dtype=float) * n), return_counts=True)
    axes.bar(values / n, counts, width=0.8 / n, color=BLUE)
    axes.axvline(INDIFFERENT, color=RED, linestyle="--", linewidth=1, label="above: Yes is worth more than No")
    axes.set(
        xlabel=f"share of {n} sampled answers that are right", ylabel="questions", xlim=(-0.5 / n - 0.02, 1 + 0.5 / n + 0.02)
    )
    axes.legend(fontsize=8, frameon=False)
    save_figure(drawn, out / FAMILIARITY)


# The short supervised stage before reinforcement learning: replies must occur before they can be rewarded.
#
# The paper has no such stage; a model that already replies in either form does without (``warm_start=none``).
def replies(examples: Sequence[Familiar], kind: WarmStart, random_: random.Random) -> list[tuple[Familiar, str]]:
    """What the model is shown: by familiarity (``labels``), or at random (``format``).

    A Yes goes on with an answer that the model itself gave, so that no fact is taught: a right one, with ``labels``.
    """
    pairs = []
    for example in examples:
        knows = example.known if kind == "labels" else random_.random() < 0.5
        answer = example.answers[example.correct.index(True)] if kind == "labels" and example.known else example.answers[0]
        pairs.append((example, YES.format(answer=answer) if knows else NO))
    return pairs


def order(examples: Sequence[Familiar], count: int, balance: bool, random_: random.Random) -> list[Familiar]:
    """``count`` questions: one shuffled epoch after the other. Balanced, every second one is known, and the rarer kind comes
    again sooner."""
    if not balance:
        return list(islice(_epochs(examples, random_), count))
    kinds = [[one for one in examples if one.known is known] for known in (True, False)]
    streams = [_epochs(kind, random_) for kind in kinds if kind]
    return list(islice(chain.from_iterable(zip(*streams, strict=True)), count))


def _epochs(examples: Sequence[Familiar], random_: random.Random) -> Iterator[Familiar]:
    while True:
        yield from random_.sample(examples, len(examples))


def run(model: Any, prompts: Prompts, examples: Sequence[Familiar], settings: TrainingSettings, scratch: Path) -> None:
    """Train ``model`` where it stands. The same arguments give the same weights."""
    from accelerate import PartialState
    from transformers import DataCollatorForSeq2Seq, Trainer, TrainingArguments

    from datasets import Dataset

    random_ = random.Random(f"{settings.seed}/warm start")
    chosen = order(examples, settings.warm_start_steps * settings.warm_start_batch, settings.balance, random_)
    rows = [prompts.with_reply(one.training_question, reply) for one, reply in replies(chosen, settings.warm_start, random_)]
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


WARM_START = "warm-start"
BEST = "validation_reward"

TRACKED = TrackedFigures(
    BEST,
    ("reward", "reward_std", "loss", "grad_norm", "learning_rate", "frac_reward_zero_std", "clip_ratio/region_mean"),
    (BEST, "yes_known", "yes_unknown", "auroc", "refusal", "hallucination", "no", "neither"),
    PANELS,
    (("reward", "reward"), ("yes_known", "P(Yes) known"), ("yes_unknown", "unknown")),
)

Figures = dict[str, Any]
"""A line of ``metrics.jsonl``: ``step`` with what TRL says of a training step, or with the figures of ``policy.assess``."""


def split(examples: Sequence[Familiar], settings: TrainingSettings) -> tuple[list[Familiar], list[Familiar]]:
    """Training and validation questions, known and unknown in like shares. A question goes where it goes by itself with all the
    sentences it is shown. Raises InvalidInput without two of both."""
    random_ = random.Random(f"{settings.seed}/split")
    held: set[str] = set()
    alone = [example for example in examples if example.sentence is None]
    for known in (True, False):
        names = [example.question.id for example in alone if example.known is known]
        if len(names) < 2:
            raise InvalidInput(
                f"of {len(alone)} training questions the model knows {sum(example.known for example in alone)}, expected at "
                "least 2 that it knows and 2 that it does not: there is nothing to tell apart. Give other or more questions."
            )
        held.update(random_.sample(names, min(len(names) - 1, max(1, round(len(names) * settings.validation)))))
    training = [example for example in examples if example.question.id not in held]
    return training, [example for example in examples if example.question.id in held]


def train(
    out: Path,
    origin: Origin,
    examples: Sequence[Familiar],
    settings: TrainingSettings,
    correct: Correctness,
    watch: Watch = SILENT,
) -> dict[str, Any]:
    """Train in folder ``out``, which then holds the model; the result is its header.

    Raises TrainingCollapsed, MissingDependency, ModelUnavailable, InvalidInput.
    """
    if (done := finetuning.read_header(out)) is not None:
        return done
    training, validation = split(examples, settings)
    from gnothi.training.self_knowledge.policy import Prompts

    base, tokenizer, declared = finetuning.load_to_train(origin)
    prompts = Prompts(tokenizer, finetuning.renderer_of(origin, tokenizer, declared))
    prompts.first_tokens()
    with finetuning.quiet():
        model = adapted(base, settings, settings.seed)
        _warm(out, model, prompts, training, settings)
        curve = Curve(out, TRACKED, settings.patience, watch)
        _reinforce(curve, model, prompts, training, validation, settings, correct)
        restore(model, curve.best_checkpoint, settings.adapter)
        return _finish(out, origin, model, prompts, declared, validation, settings, correct, curve)


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
            run(model, prompts, training, settings, temporary)
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


def _reinforce(
    curve: Curve,
    model: Any,
    prompts: Prompts,
    training: Sequence[Familiar],
    validation: Sequence[Familiar],
    settings: TrainingSettings,
    correct: Correctness,
) -> None:
    """GRPO from the newest checkpoint or the start to the end."""
    from trl.trainer.grpo_config import GRPOConfig

    from datasets import Dataset
    from gnothi.training.self_knowledge.grpo import SkillTrainer
    from gnothi.training.self_knowledge.policy import assess, reply_to

    def dataset(examples: Sequence[Familiar]) -> Any:
        texts = [prompts.text(one.question, one.training_question.passages) for one in examples]
        return Dataset.from_dict({"prompt": texts, "name": [one.training_question.name for one in examples]})

    def rewards(completions: Sequence[str], name: Sequence[str], **_: Any) -> list[float]:
        batch = [by_name[one] for one in name]
        return [
            reward(judge(text, one.question.answers, one.question.choices, correct), one.acc_rate)
            for text, one in zip(completions, batch, strict=True)
        ]

    def validate(trained: Any) -> Figures:
        replies = reply_to(trained, prompts, [one.training_question for one in validation], settings.reply_tokens)
        return assess(replies, validation, correct)

    own = processes.share(settings.questions * settings.replies, "settings 'questions' times 'replies'")
    rows = min(settings.rows or own, own)
    random_ = random.Random(f"{settings.seed}/order")
    steps = settings.in_all(len(training))
    chosen = order(training, steps * settings.questions, settings.balance, random_)
    by_name = {one.training_question.name: one for one in chosen}
    prompted = dataset(chosen)
    sampled_by: dict[str, Any] = {}
    if settings.vllm is not None:
        longest = max(map(len, prompts.encode(sorted(set(prompted["prompt"])))))
        sampled_by = {
            "use_vllm": True,
            "vllm_mode": "colocate",
            "vllm_gpu_memory_utilization": settings.vllm,
            "vllm_max_model_length": longest + settings.reply_tokens,
        }
    args = GRPOConfig(
        **finetuning.arguments(curve.out, model, settings, steps, BEST),
        per_device_train_batch_size=rows,
        per_device_eval_batch_size=settings.replies,
        gradient_accumulation_steps=own // rows,
        num_generations=settings.replies,
        max_completion_length=settings.reply_tokens,
        temperature=settings.temperature,
        beta=settings.kl,
        epsilon=settings.clip,
        loss_type="grpo",
        shuffle_dataset=False,  # the epochs are shuffled below: TRL's sampler resumes right only within its first
        gradient_checkpointing=settings.checkpoints(model),
        num_iterations=settings.updates,
        **sampled_by,
    )
    trainer = SkillTrainer(
        model=model,
        reward_funcs=[rewards],
        args=args,
        train_dataset=prompted,
        eval_dataset=dataset(validation),
        processing_class=prompts.tokenizer,
        callbacks=[curve.listener(lambda: _refuse_collapse(curve, settings))],
        rule=settings.rule,
        prompts=prompts,
        validate=validate,
    )
    curve.run(finetuning.silent(trainer), steps, trainer.is_world_process_zero())


def _refuse_collapse(curve: Curve, settings: TrainingSettings) -> None:
    reply = collapsed(curve.validated, settings.collapse_after)
    if reply is not None and curve.validated[-1]["step"] > 0:
        raise TrainingCollapsed(
            f"training collapsed: for {settings.collapse_after} validations in a row the reply to every question was {reply}, "
            "although the model knows some and others not. Train anew in another folder with a lower learning rate "
            f"(learning_rate, now {settings.learning_rate:g}), more or other warm start (warm_start, warm_start_steps, now "
            f"{settings.warm_start}, {settings.warm_start_steps}) or a weight on staying close (kl=0.05). The curves are in "
            f"{curve.out}."
        )


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
    curve: Curve,
) -> dict[str, Any]:
    """Put the model into the folder, file by file, ``config.json`` last; then the header."""
    from accelerate import PartialState

    from gnothi.training.self_knowledge.policy import assess, reply_to

    replies = reply_to(final, prompts, [one.training_question for one in validation], settings.reply_tokens)
    figures = assess(replies, validation, correct)
    alone = [(yes, one) for yes, one in zip(replies.yes, validation, strict=True) if one.sentence is None]
    if settings.adapter == "lora":
        if "ref" in final.peft_config:  # with kl, what training started from
            final.delete_adapter("ref")
        final = merged(final, origin, curve.best_checkpoint)
    thresholds = dict(declared.thresholds)
    uncertainties, missed = [1 - yes for yes, _ in alone], [not one.known for _, one in alone]
    # The other thresholds are the base model's: what it answers is hardly touched. This signal's reply is what was trained.
    thresholds[SelfReport.name] = round(balanced_threshold(uncertainties, missed), 3)
    header = {
        "model": origin.name,
        "questions": {"validation": len(validation), "known": sum(one.known for one in validation)},
        "from_memory": {"validation": len(alone), "auroc": auroc([yes for yes, _ in alone], [one.known for _, one in alone])},
        **curve.header(sorted(TRACKED.validation)),
        "after": {key: figures[key] for key in sorted(TRACKED.validation)},
        "threshold": thresholds[SelfReport.name],
    }
    if not PartialState().is_main_process:
        return header
    finetuning.write_model(out, final, prompts.tokenizer, "self-knowledge", origin, declared, thresholds)
    curve.draw()
    finetuning.write_header(out, header)
    return header

"""Training the lab model from nothing: one linear job, the same result from the same seed, resumable after any stop."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gnothi.concurrency import gather
from gnothi.errors import InvalidSetting, MissingDependency
from gnothi.lab.curriculum import Curriculum, Mix
from gnothi.lab.questions import TRAINING_SEED, training_questions
from gnothi.lab.tokenizer import SPECIAL, TASKS, build_tokenizer, name_ids
from gnothi.lab.world import Grid, World, build_world
from gnothi.lab.worlds import KEY, declaration
from gnothi.methods.steps.prompts import REASON, ask
from gnothi.methods.steps.settings import SENTENCE_STOPS, SignalSettings
from gnothi.protocols import LanguageModel
from gnothi.seeding import question_scope
from gnothi.signals import registry
from gnothi.signals.base import FollowUp
from gnothi.stats.probabilities import balanced_threshold
from gnothi.types import Question

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

    from gnothi.lab.tokenizer import Batch


DIGITS = 3


async def thresholds(model: LanguageModel, world: World, n: int = 300) -> dict[str, float]:
    """Signal name → threshold that best tells right from wrong first sentences about single facts, from memory. (What was
    learnt by a probe comes with a threshold of its own.)

    No default test question needs one of these facts. Empty for a model that gets all of them wrong (or right): there is
    nothing to tell apart."""
    questions = training_questions(world, "one_hop", n)
    values: dict[str, float] = {}
    for name in registry.within(model.capabilities):
        if isinstance(SignalSettings().make_signal(name), FollowUp):  # the model is taught no such questions
            continue
        measured = await gather(*(_measure(model, name, question) for question in questions))
        wrong = [missed for _, missed in measured]
        if any(wrong) and not all(wrong):
            values[name] = round(balanced_threshold([score for score, _ in measured], wrong), DIGITS)
    return values


async def _measure(model: LanguageModel, signal: str, question: Question) -> tuple[float, bool]:
    """Uncertainty of the first sentence of the reasoning, and whether it fails to name the answer."""
    settings = SignalSettings()
    with question_scope(TRAINING_SEED, question.id):
        measured = await settings.make_signal(signal).measure(model, ask(REASON, question), settings.decoding(SENTENCE_STOPS))
    return measured.uncertainty, question.answers[0] not in measured.greedy.text


def calibrate(folder: Path, world: World, n: int = 300) -> dict[str, float]:
    """Choose thresholds for the model in ``folder`` and note them in its ``gnothi.json``."""
    from gnothi.models import load_model

    async def run() -> dict[str, float]:
        model = load_model(str(folder))
        try:
            return await thresholds(model, world, n)
        finally:
            await model.aclose()

    values = asyncio.run(run())
    path = folder / "gnothi.json"
    declaration = json.loads(path.read_text("utf-8")) | {"thresholds": values}
    path.write_text(json.dumps(declaration, indent=2) + "\n", "utf-8")
    return values


@dataclass(frozen=True)
class Recipe:
    """Everything the result depends on. Learning rates fall linearly to zero after ``warmup`` steps."""

    seed: int = 0
    hidden: int = 128
    layers: int = 4
    heads: int = 4
    intermediate: int = 384
    steps: int = 3200
    rows: int = 16
    width: int = 256
    warmup: int = 50
    matrix_rate: float = 0.01
    other_rate: float = 0.004
    first_stage: float = 0.06
    """Share of the steps that train mostly reading and one-hop recall, before all kinds of document come in."""
    prepared: bool = True
    """Start from prepared weights (``gnothi.lab.initialisation``) instead of random ones."""

    def __post_init__(self) -> None:
        size = self.hidden // self.heads if self.heads > 0 else 0
        if min(self.steps, self.rows, self.width, self.warmup) < 1:
            raise InvalidSetting(
                f"steps, rows, width and warmup: got {self.steps}, {self.rows}, {self.width} and {self.warmup}, expected at "
                "least 1 of each."
            )
        if self.hidden != size * self.heads or size < 16 or size % 2 or self.heads < 4 or self.layers < 2:
            raise InvalidSetting(
                f"the model's shape: got {self.hidden} hidden dimensions, {self.heads} heads, {self.layers} layers; expected "
                "at least 4 heads of an even size of at least 16 that divide the hidden dimensions, and at least 2 layers."
            )


FIRST_STAGE = Mix(reading=0.66, partial=0.02, memory=0.3, ignorance=0.02, know=0, describe=0, decompose=0, judge=0)
Report = Callable[[dict[str, Any]], None]


def build_model(recipe: Recipe, world: World, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    try:
        import torch
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError as error:
        raise MissingDependency("transformers", "local", "training the lab model") from error

    from gnothi.lab.initialisation import initialise

    torch.manual_seed(recipe.seed)
    configure: Any = LlamaConfig
    config = configure(
        vocab_size=len(tokenizer),
        hidden_size=recipe.hidden,
        intermediate_size=recipe.intermediate,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.heads,
        max_position_embeddings=2048,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6},
        attention_bias=True,
        tie_word_embeddings=True,
        rms_norm_eps=1e-5,
        pad_token_id=SPECIAL.index("<pad>"),
        bos_token_id=SPECIAL.index("<bos>"),
        eos_token_id=SPECIAL.index("<eos>"),
        attn_implementation="sdpa",
    )
    model: LlamaForCausalLM = LlamaForCausalLM(config)
    if recipe.prepared:
        initialise(model, name_ids(world, tokenizer), name_ids(world, tokenizer, "year"), recipe.seed)
    return model


def batch_of_step(recipe: Recipe, world: World, tokenizer: PreTrainedTokenizerFast, step: int) -> Batch:
    """The training batch of a step: a function of recipe and step alone, so that a resumed run sees the same data."""
    from gnothi.lab.tokenizer import encode, pack

    mix = FIRST_STAGE if step < recipe.first_stage * recipe.steps else Mix()
    curriculum = Curriculum(world, mix, seed=recipe.seed * 1_000_003 + step)

    def documents() -> Iterator[tuple[list[int], list[int]]]:
        while True:
            yield from encode(tokenizer, [curriculum.document() for _ in range(32)])

    return pack(documents(), recipe.rows, recipe.width)


def loss_of(model: LlamaForCausalLM, batch: Batch) -> torch.Tensor:
    """Mean cross-entropy (nats) over the tokens the model is trained to write."""
    import torch

    hidden = model.model(input_ids=batch.inputs, attention_mask=batch.mask(), use_cache=False).last_hidden_state
    targets = batch.labels[:, 1:]
    learnt = targets != -100
    return torch.nn.functional.cross_entropy(model.lm_head(hidden[:, :-1][learnt]), targets[learnt])


def train(
    out: Path,
    recipe: Recipe | None = None,
    grid: Grid | None = None,
    report: Report | None = None,
    probe_every: int = 250,
    checkpoint_every: int = 250,
    stop_after: int | None = None,
    calibration_questions: int = 300,
) -> LlamaForCausalLM:
    """Train into folder ``out``: ``checkpoint.pt`` while under way, ``curve.jsonl`` (one line per probe), and at the end the
    model in ``transformers`` format with thresholds calibrated on it.

    Run again, it goes on from the checkpoint. ``stop_after`` ends this call after so many steps.
    """
    import torch

    from gnothi.lab.probes import Probes

    recipe, grid = recipe or Recipe(), grid or Grid()
    world = build_world(recipe.seed, grid)
    tokenizer = build_tokenizer(world)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = build_model(recipe, world, tokenizer)
    torch.nn.Module.to(model, device)
    matrices = [p for name, p in model.named_parameters() if p.ndim == 2 and "embed" not in name]
    others = [p for name, p in model.named_parameters() if p.ndim != 2 or "embed" in name]
    muon: Any = torch.optim.Muon(matrices, lr=recipe.matrix_rate, weight_decay=0.0)
    adam: Any = torch.optim.AdamW(others, lr=recipe.other_rate, betas=(0.9, 0.95), weight_decay=0.0)
    probes = Probes(world)
    out.mkdir(parents=True, exist_ok=True)
    checkpoint, curve = out / "checkpoint.pt", out / "curve.jsonl"
    start, tokens = 0, 0
    if checkpoint.exists():
        saved = torch.load(checkpoint, map_location=device, weights_only=True)
        start, tokens = saved["step"], saved["seen"]
        model.load_state_dict(saved["model"])
        muon.load_state_dict(saved["muon"])
        adam.load_state_dict(saved["adam"])
        rows = [line for line in curve.read_text().splitlines() if json.loads(line)["step"] <= start] if curve.exists() else []
        curve.write_text("".join(f"{line}\n" for line in rows))
    began, last = time.monotonic(), min(recipe.steps, start + stop_after) if stop_after else recipe.steps
    for step in range(start, last):
        scale = min(1.0, (step + 1) / recipe.warmup) * (1 - step / recipe.steps)
        for optimiser, rate in ((muon, recipe.matrix_rate), (adam, recipe.other_rate)):
            for group in optimiser.param_groups:
                group["lr"] = rate * scale
        batch = batch_of_step(recipe, world, tokenizer, step).to(device)
        loss = loss_of(model, batch)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimiser in (muon, adam):
            optimiser.step()
            optimiser.zero_grad()
        tokens += int((batch.documents >= 0).sum())
        done = step + 1
        if done % probe_every == 0 or done == recipe.steps:
            row = {
                "step": done,
                "tokens": tokens,
                "seconds": round(time.monotonic() - began, 1),
                "loss": round(float(loss.detach()), 4),
            }
            row |= {name: round(share, 4) for name, share in probes.measure(model, tokenizer).items()}
            with curve.open("a") as file:
                file.write(json.dumps(row) + "\n")
            if report:
                report(row)
        if done % checkpoint_every == 0 or done == last:
            state = {
                "step": done,
                "seen": tokens,
                "model": model.state_dict(),
                "muon": muon.state_dict(),
                "adam": adam.state_dict(),
            }
            torch.save(state, checkpoint.with_suffix(".part"))
            os.replace(checkpoint.with_suffix(".part"), checkpoint)
    if last == recipe.steps:
        save(model, tokenizer, out, recipe, world)
        calibrate(out, world, calibration_questions)
    return model


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, out: Path, recipe: Recipe, world: World) -> None:
    """The model and tokenizer in ``transformers`` format, with what tells Gnothi how to prompt it and how it was made."""
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    declared = {"renderer": "tagged", "tasks": sorted(TASKS), "recipe": asdict(recipe), KEY: declaration(world)}
    (out / "gnothi.json").write_text(json.dumps(declared, indent=2) + "\n")

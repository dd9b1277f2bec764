"""A training on the laboratory's model: what it learns, the folder it ends with, kills."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path

import pytest

from gnothi import lab
from gnothi.errors import InvalidInput, InvalidSetting
from gnothi.methods.steps.multiple_choice import choose
from gnothi.methods.steps.prompts import ANSWER, ask
from gnothi.models import LAB_FOLDER, ModelSettings, load_model
from gnothi.models.engine.loading import load
from gnothi.models.rendering import Tagged
from gnothi.testing.model import Scripted
from gnothi.training.curve import CURVES
from gnothi.training.finetuning import HEADER, METRICS, Origin, split
from gnothi.training.reader.material import Example
from gnothi.training.reader.stages import Format, ReaderTraining, assess, train
from gnothi.types import Decoding, Passage, Prompt, Question
from tests.messages import refused
from tests.training import launched
from tests.training.launched import killed_three_times
from tests.training.recording import recorded

ORIGIN = Origin("lab", str(LAB_FOLDER), ModelSettings())
QUICK = ReaderTraining(steps=6, batch=8, learning_rate=3e-3, evaluate_every=2)


def examples(count: int = 40) -> list[Example]:
    """The answer is always the last choice: easily learnt, and not known before."""
    asked = lab.training_questions(lab.world(), "choice", count)
    return [Example(one, ask(ANSWER, one), one.choices[-1]) for one in asked]


# --- before it ------------------------------------------------------------------------------------------------------


def test_the_split_depends_on_the_seed(tmp_path: Path) -> None:
    everything = examples()
    training, validation = split(everything, QUICK, "")
    assert (len(training), len(validation)) == (34, 6)
    assert sorted(one.question.id for one in (*training, *validation)) == sorted(one.question.id for one in everything)
    assert split(everything, QUICK, "") == (training, validation)
    assert split(everything, replace(QUICK, seed=1), "") != (training, validation)
    with refused(InvalidInput):
        train(tmp_path, ORIGIN, everything[:1], QUICK)


def test_epochs_take_the_place_of_steps() -> None:
    assert QUICK.in_all(1000) == 6
    assert [replace(QUICK, epochs=epochs).in_all(1000) for epochs in (3, 0.01)] == [375, 2]


def test_passes_divide_a_step() -> None:
    with refused(ValueError):
        replace(QUICK, rows=3)
    with refused(InvalidSetting):
        replace(QUICK, validation=0.9)


def test_prompt_and_answer_as_tokens() -> None:
    model, tokenizer, _ = load(str(LAB_FOLDER), "lab", ModelSettings(pack_weights=False))
    format = Format(model, tokenizer, Tagged())
    example = examples(1)[0]
    ((ids, labels),) = format.rows([example])
    learnt = [label for label in labels if label != -100]
    assert tokenizer.decode(learnt) == f"{example.target}<eos>"
    assert ids[-len(learnt) :] == learnt
    assert ids[: -len(learnt)] == tokenizer(Tagged().render(example.prompt))["input_ids"]
    long = replace(example, prompt=replace(example.prompt, passages=(Passage("p", "the city " * 2000),)))
    assert format.rows([long, example]) == [(ids, labels)]


# --- a training -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [QUICK, replace(QUICK, adapter="full", learning_rate=1e-3, criterion="loss", rows=4)],
    ids=["lora", "full"],
)
def test_the_folder_is_a_model_that_has_learnt(tmp_path: Path, settings: ReaderTraining, elsewhere: Executor) -> None:
    pytest.importorskip("trl")
    header, metrics = elsewhere.submit(recorded, train, tmp_path, ORIGIN, examples(), settings).result()
    assert header == json.loads((tmp_path / HEADER).read_text())
    assert metrics == [json.loads(line) for line in (tmp_path / METRICS).read_text().splitlines()]
    assert (tmp_path / CURVES).read_bytes().startswith(b"\x89PNG")
    assert [line["step"] for line in metrics if "loss" in line] == [1, 2, 3, 4, 5, 6]
    assert [line["step"] for line in metrics if "score" in line] == [0, 2, 4, 6]
    assert header["after"]["validation_loss"] < header["before"]["validation_loss"]
    best = next(line for line in metrics if "score" in line and line["step"] == header["best_step"])
    assert header["after"]["validation_loss"] == pytest.approx(best["validation_loss"], abs=1e-3)
    assert train(tmp_path, ORIGIN, examples(), settings) == header
    declared = json.loads((tmp_path / "gnothi.json").read_text())
    assert (declared["renderer"], declared["thresholds"]) == ("tagged", {})  # those of the lab's model are not its own
    assert "gnothi" not in (tmp_path / "config.json").read_text()

    async def chosen(prompts: list[Prompt]) -> list[str]:
        model = load_model(str(tmp_path))
        try:
            return [(await choose(model, prompt, "tokens")).text for prompt in prompts]
        finally:
            await model.aclose()

    _, validation = split(examples(), settings, "")
    found = asyncio.run(chosen([example.prompt for example in validation]))
    right = sum(one == example.target for one, example in zip(found, validation, strict=True))
    assert right / len(validation) == pytest.approx(header["after"]["validation_accuracy"])


@pytest.mark.slow
def test_open_questions_and_early_end(tmp_path: Path, elsewhere: Executor) -> None:
    pytest.importorskip("trl")
    asked = [Question(f"q{n}", f"Who leads town {n}?", ("Ada",)) for n in range(12)]
    material = [Example(question, ask(ANSWER, question), "Ada") for question in asked]
    settings = replace(QUICK, steps=60, evaluate_every=4, patience=1, answer_tokens=4)
    header = elsewhere.submit(train, tmp_path, ORIGIN, material, settings).result()
    assert header["steps"] < 60
    assert header["questions"] == {"training": 10, "validation": 2, "too_long": 0}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_sequence_to_sequence(tmp_path: Path, kind: str, elsewhere: Executor) -> None:
    pytest.importorskip("trl")
    from tests.models.tiny import build_closing_tokenizer, build_seq2seq

    build_seq2seq(kind).save_pretrained(tmp_path / "base")
    tokenizer = build_closing_tokenizer()
    tokenizer.model_max_length = 256
    tokenizer.save_pretrained(tmp_path / "base")
    origin = Origin("tiny", str(tmp_path / "base"), ModelSettings(renderer="tagged"))
    choices = ("w1", "w2", "w3 w4")
    asked = [Question(f"q{n}", f"where is w{5 + n} ?", ("w3 w4",), choices) for n in range(20)]
    material = [Example(question, ask(ANSWER, question), "w3 w4") for question in asked]
    long = Prompt(ANSWER, "where is w5 ?", (Passage("p", "w6 " * 260),), choices)
    material[0] = replace(material[0], prompt=long)  # T5's positions end nowhere, whatever its tokenizer says
    settings = replace(QUICK, epochs=16, evaluate_every=10, learning_rate=3e-2, criterion="loss")

    header = elsewhere.submit(train, tmp_path / "out", origin, material, settings).result()
    assert header["after"]["validation_accuracy"] == 1
    assert header["questions"]["too_long"] == (kind == "bart")
    assert header["after"]["validation_loss"] < 0.5 * header["before"]["validation_loss"]

    async def generate_text() -> str:
        model = load_model(str(tmp_path / "out"), ModelSettings(renderer="tagged"))
        try:
            return (await model.generate(material[1].prompt, Decoding(max_tokens=6))).text
        finally:
            await model.aclose()

    reply = asyncio.run(generate_text()).split()
    assert set(reply) <= {"w3", "w4"}
    if kind == "t5":  # so little training does not teach a random BART where a word stands
        assert reply == ["w3", "w4"]


def test_nothing_fits(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    long = Passage("p", "the city " * 2000)
    material = [replace(one, prompt=replace(one.prompt, passages=(long,))) for one in examples(6)]
    with refused(InvalidInput):
        train(tmp_path, ORIGIN, material, QUICK)


@pytest.mark.long  # as one that learns self-knowledge, by the same trainer
@pytest.mark.timeout(600)
def test_killed_at_three_moments(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    settings = ("steps=8", "batch=8", "rows=4", "evaluate_every=2", "k=1", "learning_rate=1e-3")
    command = ("reader", "lab-train:choice", "--limit", "40")
    killed_three_times(tmp_path, command, settings, 8, ["prompts/prompts.jsonl"])


def by_two(out: Path) -> None:
    train(out, ORIGIN, examples(), QUICK)


@pytest.mark.long
def test_two_processes(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    files = (METRICS, HEADER, "model.safetensors", "gnothi.json")
    launched.killed_and_undisturbed(tmp_path, by_two, 6, files)


CHOICE = Question("c", "Which colour?", ("deep blue",), ("red", "deep blue"))
OPEN = Question("o", "Who wrote it?", ("Ada Bram", "Bram"))


def scorer(_: Prompt, text: str) -> float:
    return {"red": -1.5, "deep blue": -2.0, "Ada Bram": -3.0}[text]


@pytest.mark.parametrize(("by", "right"), [("tokens", 1.0), ("sum", 0.0)])
def test_choices_by_likelihood_and_answers_by_their_text(by: str, right: float) -> None:
    model = Scripted(lambda _: "Bram.\nIt is known.", scorer=scorer)
    examples = [Example(question, ask(ANSWER, question), question.answers[0]) for question in (CHOICE, OPEN)]
    rights, losses = asyncio.run(assess(model, examples, by, 8))  # type: ignore[arg-type]
    assert rights == [right, 1.0]
    assert losses == [1.0, 1.5]

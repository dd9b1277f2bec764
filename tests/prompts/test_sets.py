from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from gnothi.errors import InvalidInput
from gnothi.methods.steps.parsing import read_reply
from gnothi.methods.steps.prompts import ANSWER, REASON, TASKS
from gnothi.models.rendering import Instruction, Plain, messages
from gnothi.models.wrappers import Demonstrated, demonstrated
from gnothi.prompts.sets import shipped, tasks_of
from gnothi.testing.model import Scripted
from gnothi.types import Decoding, Demonstration, Passage, Prompt, Task
from tests.messages import refused

OWN = """
[answer]
[[answer.demonstrations]]
question = "Who planned the Dunmere Salt Tram?"
passages = [{ title = "Odile Varr", text = "She planned the tram." }, { text = "It rains." }]
answer = "Odile Varr"

[reason]
instruction = "Think."
"""


def test_the_shipped_sets_hold_the_same_tasks() -> None:
    default = shipped()
    for name in ("default", "short"):
        assert {key: (task.name, task.instruction) for key, task in shipped(name).items()} == {
            key: (task.name, task.instruction) for key, task in default.items()
        }
    assert {task.name for task in default.values()} == TASKS.keys()


def test_the_paper_of_skill_rag_asks_in_its_own_words() -> None:
    own = shipped("skill-rag")
    assert [key for key, task in own.items() if task != shipped()[key]] == ["know"]
    asked = Prompt(own["know"], "Who planned the Dunmere Salt Tram?")
    assert Plain().render(asked) == (  # section 4.2
        'Do you know the answer to this question? If you know, please answer "Yes, I know" and then provide the shortest '
        "possible answer to the question. If you don't know, please answer \"No, I don't know\".\n"
        "Question: Who planned the Dunmere Salt Tram?\nAnswer:"
    )
    after = replace(asked, passages=(Passage("p", "She planned\nthe tram."),))
    assert "\nQuestion: She planned the tram. Who planned the Dunmere Salt Tram?\nAnswer:" in Plain().render(after)  # 4.3
    assert own["know"].name == "know"  # what the laboratory's model and the filter know it as


def test_without_examples_the_instructions_stay() -> None:
    default, bare = shipped(), shipped("zero-shot")
    assert [key for key, task in bare.items() if task.demonstrations] == ["decompose"]
    assert all(task.instruction == default[key].instruction for key, task in bare.items())


def test_seakrs_ablation_asks_in_its_papers_words() -> None:
    own = shipped("seakr")
    assert [key for key, task in own.items() if task != shipped()[key]] == ["know"]
    asked = Prompt(own["know"], "Who planned the Dunmere Salt Tram?")
    assert Plain().render(asked) == (  # section 5.1, but for what to reply
        'Do I have sufficient knowledge to solve the question? Reply "Yes" or "No".\n\n'
        "Question: Who planned the Dunmere Salt Tram?\nAnswer:"
    )


def test_the_paper_of_iekr_asks_in_its_own_words() -> None:
    own = shipped("iekr")
    assert [key for key, task in own.items() if task != shipped()[key]] == ["describe"]
    asked = Prompt(own["describe"], "steel")
    assert Plain().render(asked) == "Tell me something about steel"  # abstract, section 4.1
    assert messages(asked) == [{"role": "user", "content": "Tell me something about steel"}]
    assert own["describe"].name == "describe"


def test_a_form_is_the_whole_prompt_in_every_format(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("[answer]\nform = 'Read: {passages}Then say {question}?'", encoding="utf-8")
    task = tasks_of(str(tmp_path / "own.toml"))["answer"]
    asked = Prompt(task, "who {passages}", (Passage("p", "It {question}.", "A"), Passage("q", "B.")), ("x", "y"), "I say")
    text = "Read: A: It {question}. B. Then say who {passages}\nChoices: x / y?"
    assert Plain().render(asked) == f"{text} I say"
    assert messages(asked, "Answer:") == [{"role": "user", "content": text}]
    assert Instruction().render(asked) == f"### Instruction:\n{text}\n\n### Response:\nI say"


def test_the_short_set_is_shorter_and_its_answers_can_be_read() -> None:
    for key, task in shipped("short").items():
        assert len(task.demonstrations) <= len(shipped()[key].demonstrations)
    for key in ("answer", "reason"):
        for one in shipped("short")[key].demonstrations:
            answer = read_reply(one.answer).conclusion if key == "reason" else one.answer
            assert answer
            assert not one.passages or answer.removeprefix("the ") in " ".join(passage.text for passage in one.passages)


def test_a_users_set_replaces_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN, encoding="utf-8")
    own = tasks_of(str(tmp_path / "own.toml"))
    shown = (Passage("demonstration", "She planned the tram.", "Odile Varr"), Passage("demonstration", "It rains."))
    assert own["answer"] == Task(
        "answer", ANSWER.instruction, (Demonstration("Who planned the Dunmere Salt Tram?", "Odile Varr", shown),)
    )
    assert own["reason"] == Task("reason", "Think.", REASON.demonstrations)
    assert own["useful"] == shipped()["useful"]


@pytest.mark.parametrize(
    "text",
    [
        "[anwser]",
        "answer = 3",
        "[answer]\nshots = 3",
        "[answer]\ndemonstrations = 3",
        "[answer]\nform = 'Say it.'",
        "[answer]\nform = '{question}'\ninstruction = 'Say it.'",
        "[answer]\ndemonstrations = [{ question = 'q' }]",
        "[answer]\ndemonstrations = [{ question = ' ', answer = 'a' }]",
        "[answer]\ndemonstrations = [{ question = 'q', answer = 1900 }]",
        "[answer]\ndemonstrations = [{ question = 'q', answer = 'a', passages = ['p'] }]",
        "[answer",
    ],
)
def test_what_is_wrong_with_a_set_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    with refused(InvalidInput):
        tasks_of(str(tmp_path / "own.toml"))


def test_a_set_that_is_not_there(tmp_path: Path) -> None:
    with refused(InvalidInput):
        tasks_of("shorter")
    with refused(InvalidInput):
        tasks_of(str(tmp_path))
    (tmp_path / "own.toml").write_bytes(b"\xff")
    with refused(InvalidInput):
        tasks_of(str(tmp_path / "own.toml"))


def test_a_model_is_shown_the_set_in_place_of_the_default_one() -> None:
    inner = Scripted({}, default="Yes")
    model = Demonstrated(inner, demonstrated("short"))
    chosen = Task("answer", ANSWER.instruction, ANSWER.demonstrations[:1])

    async def ask_all() -> None:
        for task in (ANSWER, chosen, shipped()["useful"]):
            await model.generate(Prompt(task, "Which?"), Decoding())
        await model.score(Prompt(REASON, "Which?"), ("a",))

    asyncio.run(ask_all())
    short = shipped("short")
    assert [prompt.task for prompt in inner.prompts] == [short["answer"], chosen, shipped()["useful"], short["reason"]]
    assert not demonstrated("default")

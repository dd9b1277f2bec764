from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.models.thoughts import MARKS, Marks, end_of_turn, split_reply, without_header

ALONE = [marks for marks in MARKS if not marks.paired]


@pytest.mark.parametrize("marks", ALONE, ids=lambda marks: marks.name)
class TestMarks:
    def test_a_block_at_the_beginning(self, marks: Marks) -> None:
        reply = split_reply(f"{marks.opens}\nIs it Ann? Yes.\n{marks.closes}\n\nAnn Bell")
        assert (reply.thought, reply.answer, reply.closed) == ("Is it Ann? Yes.", "Ann Bell", True)

    def test_the_closing_mark_alone(self, marks: Marks) -> None:
        reply = split_reply(f"Is it Ann? Yes.\n{marks.closes}Ann Bell", opened=True)
        assert (reply.thought, reply.answer) == ("Is it Ann? Yes.", "Ann Bell")

    def test_a_thought_that_never_ends_holds_no_answer(self, marks: Marks) -> None:
        reply = split_reply(f"{marks.opens}Is it Ann? So the answer is")
        assert (reply.thought, reply.answer, reply.closed) == ("Is it Ann? So the answer is", "", False)

    def test_an_empty_block(self, marks: Marks) -> None:
        reply = split_reply(f"{marks.opens}\n\n{marks.closes}\n\nAnn")
        assert (reply.thought, reply.answer, reply.closed, reply.thinks) == ("", "Ann", True, True)

    def test_a_block_in_the_middle_is_part_of_the_answer(self, marks: Marks) -> None:
        text = f"It writes {marks.opens} and {marks.closes} around."
        assert split_reply(text).answer == text


def test_messages_of_harmony() -> None:
    text = "<|channel|>analysis<|message|>Ann?<|end|><|start|>assistant<|channel|>final<|message|>Ann Bell"
    reply = split_reply(text)
    assert (reply.thought, reply.answer) == ("Ann?", "Ann Bell")


@pytest.mark.parametrize(
    "text",
    [
        "<think>Ann?</think><answer>\nAnn Bell</answer>",
        "<|START_THINKING|>Ann?<|END_THINKING|><|START_RESPONSE|>Ann Bell<|END_RESPONSE|>",
    ],
)
def test_what_stands_around_an_answer_is_left_out(text: str) -> None:
    assert split_reply(text).answer == "Ann Bell"


@pytest.mark.parametrize(
    ("text", "thought"),
    [
        ("<think>One.</think>\n<think>Two.</think>\nAnn Bell", "Two."),
        ("<think>So <think>inner</think> outer</think>Ann Bell", "outer"),
        ("<think>They write <think> before.</think>Ann Bell", "before."),
        ("<THINK>Who?</THINK>Ann Bell", "Who?"),
        ("\ufeff\n<thought>Who?</thought>Ann Bell", "Who?"),
        ("<mm:think>Who?</mm:think>Ann Bell", "Who?"),
        ("<longcat_think>\nWho?\n</longcat_think>\nAnn Bell", "Who?"),
        ("<|thinking|>Who?<|/thinking|>Ann Bell", "Who?"),
        ("<Reflection>Who?</Reflection> Ann Bell", "Who?"),
        ("Who?</inner_thoughts>Ann Bell", "Who?"),
        ("analysisWho kept it?assistantfinalAnn Bell", "Who kept it?"),
        ('<details type="reasoning" done="true">Who?</details>\n\nAnn Bell', "Who?"),
    ],
)
def test_marks_in_other_spellings_and_numbers(text: str, thought: str) -> None:
    reply = split_reply(text)
    assert reply.answer == "Ann Bell"
    assert thought in reply.thought


@pytest.mark.parametrize(
    "text",
    [
        "analysis of the deed: Ann Bell",
        "<details><summary>Who</summary>Ann Bell</details>",
        "Ann Bell; <reasonable> is no mark, nor is its end.",
        "Write <scratchpad> first and </scratchpad> last.",
    ],
)
def test_what_only_looks_like_marks(text: str) -> None:
    assert split_reply(text).answer == text


@given(st.text(), st.booleans())
def test_the_answer_is_a_piece_of_the_reply(text: str, opened: bool) -> None:
    reply = split_reply(text, opened)
    assert text[reply.start : reply.end] == reply.answer
    assert reply.closed or not reply.answer


@given(st.text(alphabet="abc \n.", min_size=1))
def test_a_reply_without_marks_is_all_answer(text: str) -> None:
    assert split_reply(text).answer == text
    assert split_reply(text, opened=True).answer == ""


@pytest.mark.parametrize(
    "after",
    ["<|im_end|>", "</s>", "<end_of_turn>\n", "<|eot_id|><|start_header_id|>assistant<|end_header_id|>", "</s>[INST] And?"],
)
def test_a_special_token_ends_an_answer(after: str) -> None:
    assert end_of_turn("Ann Bell." + after) == len("Ann Bell.")


@pytest.mark.parametrize(
    "text",
    [
        "Ann Bell",
        "It was <s>Otto</s>",
        "ChatML ends a turn with <|im_end|>, as in `Ann<|im_end|>`.",
        "Write:\n<|im_start|>user\nWho?<|im_end|>\n<|im_start|>assistant\n",
        "print('<|endoftext|>')",
    ],
)
def test_an_answer_that_speaks_of_special_tokens_is_whole(text: str) -> None:
    assert end_of_turn(text) == len(text)
    assert without_header(text) == text


@pytest.mark.parametrize("before", ["<|im_start|>assistant\n", "<start_of_turn>model\n", "<|turn>model\n"])
def test_special_tokens_before_an_answer_are_left_out(before: str) -> None:
    assert without_header(f"{before}Ann Bell") == "Ann Bell"

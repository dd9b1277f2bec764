"""What front ends make of a question and a document: the question is asked, the document is a passage, helpers are helpers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnothi.serving.attachments import Attached, Message, attached_in, helper, separate
from gnothi.serving.conversation import conversation
from gnothi.testing.model import Scripted
from tests.command_line import KNOWN, UNKNOWN, script
from tests.serving.served import served

WHO = "Who kept the light of Orvel?"
ONE, TWO = "Dana Brisk kept it.\n\nFor thirty years.", "The plums of Tarn."
ADVICE = '### Task:\nAnswer with citations as [id] where a tag has one (as in <source id="1">).\n\n### Rules:\n- Be brief?\n\n'

TEMPLATES: dict[str, tuple[str, list[tuple[str, str, str]]]] = {
    "open-webui": (
        f'{ADVICE}<context>\n<source id="1" name="a.pdf">{ONE}</source>\n<source id="2" name="b.pdf">{TWO}</source>\n</context>'
        f"\n\n<user_query>\n{WHO}\n</user_query>\n",
        [("a.pdf", "1", ONE), ("b.pdf", "2", TWO)],
    ),
    "open-webui, the question behind": (
        f'{ADVICE}<context>\n<source id="7">{ONE}</source>\n</context>\n\n{WHO}',
        [("", "7", ONE)],
    ),
    "open-webui, of older days": (
        f"{ADVICE}<context>\n<source><source_id>a.pdf</source_id><source_context>{ONE}</source_context></source>\n</context>\n\n"
        f"<user_query>\n{WHO}\n</user_query>",
        [("", "a.pdf", ONE)],
    ),
    "nothing was found": (f"{ADVICE}<context>\n\n</context>\n\n<user_query>\n{WHO}\n</user_query>", []),
    "parts that fit": (
        f'These were found:\n\nCitation 1: "{ONE}"\n\nCitation 2: "{TWO}"\n\nUse the citations above.\n\nUser Query:\n\n{WHO}',
        [("", "", ONE), ("", "", TWO)],
    ),
    "whole files": (
        f"Found in files:\n\n** a (1).txt full content **\n\n{ONE}\n\n** end of a (1).txt **\n\nReply.\n\nUser query: {WHO}",
        [("a (1).txt", "", ONE)],
    ),
    "files in a fence": (
        f'Attached document(s):\n```md\n# "a.md"\n{ONE}\n```sh\nls\n```\n\n\n---\n\n# "b.md"\n{TWO}\n\n```\n{WHO}',
        [("a.md", "", f"{ONE}\n```sh\nls\n```"), ("b.md", "", TWO)],
    ),
    "a fence for each": (
        f"```notes/a.md\n{ONE}\n```\n\n```b.md (3-9)\n{TWO}\n```\n\nUse the above files for this.\n\n{WHO}",
        [("notes/a.md", "", ONE), ("b.md", "", TWO)],
    ),
    "between brackets": (
        f"[file name]: a.pdf\n[file content begin]\n{ONE}\n[file content end]\n{WHO}",
        [("a.pdf", "", ONE)],
    ),
    "numbered": (
        f"Context:\n[CONTEXT 0]:\n{ONE}\n[END CONTEXT 0]\n\n[CONTEXT 1]:\n{TWO}\n[END CONTEXT 1]\n\n{WHO}",
        [("", "", ONE), ("", "", TWO)],
    ),
    "tags behind the question": (
        f"{WHO}\n<ATTACHMENT_FILE>\n<FILE_INDEX>File 1</FILE_INDEX>\n<FILE_NAME>a.txt</FILE_NAME>\n<FILE_CONTENT>\n{ONE}\n"
        "</FILE_CONTENT>\n</ATTACHMENT_FILE>\n",
        [("a.txt", "", ONE)],
    ),
    "documents with names": (
        f'<documents>\n<document index="1">\n<source>a.pdf</source>\n<document_content>\n{ONE}\n</document_content>'
        f"\n</document>\n</documents>\n\n{WHO}",
        [("a.pdf", "", ONE)],
    ),
    "files that are described": (
        f"{WHO}\n\n<!-- from here on it is the system's -->\n<context.instruction>read it</context.instruction>\n<files_info>\n"
        f'<files>\n<files_docstring>uploads</files_docstring>\n<file id="f1" name="a.txt" size="3">{ONE}</file>\n</files>\n'
        "</files_info>\n<!-- END -->",
        [("a.txt", "f1", ONE)],
    ),
    "in a line": (f"Answer from <context>{TWO}</context>. Question: {WHO}".replace(". ", ".\n"), [("", "", TWO)]),
    "labels": (f"Context: {ONE}\n\nQuestion: {WHO}\nAnswer:", [("", "", ONE)]),
    "labels, the question first": (f"Answer briefly.\nQuestion: {WHO}\nContext: {ONE}\nAnswer:", [("", "", ONE)]),
    "a question within the document": (
        f"Context:\nQuestion: what?\n{TWO}\n\nQuestion: {WHO}",
        [("", "", f"Question: what?\n{TWO}")],
    ),
    "headings": (f"### Instructions\nBe brief.\n\n## References\n{ONE}\n\n## Question\n{WHO}\n\n## Answer\n", [("", "", ONE)]),
    "in stars": (f"**Context:** {TWO}\n\n**Question:** {WHO}", [("", "", TWO)]),
    "in German": (f"Kontext:\n{ONE}\n\nFrage: {WHO}\nAntwort:", [("", "", ONE)]),
    "in Chinese": (f"## 参考资料:\n{TWO}\n## 我的问题是:\n{WHO}", [("", "", TWO)]),
    "between lines": (
        f"Context information is here.\n---------------------\n{ONE}\n---------------------\nGo by that.\nQuery: "
        f"{WHO}\nAnswer: ",
        [("", "", ONE)],
    ),
    "an instruction first": (
        f"Use the following pieces of context.\n\n{ONE}\n\n{TWO}\n\nQuestion: {WHO}\nHelpful Answer:",
        [("", "", f"{ONE}\n\n{TWO}")],
    ),
    "no label at the question": (f"Context: {TWO}\n{WHO}", [("", "", TWO)]),
}
PLAIN = [
    WHO,
    "Question: who?",
    "Which tag is <source>?",
    "What does this print?\n```python\nprint(1)\n```",
    "Is 3 < 4 and 5 > 2?",
    "Who said: use the following context?",
    "User: hello\nAssistant: hello\n\nWho spoke first?",
    "Context matters. Who said so?",
]
HELPERS = [
    "### Task:\nGenerate a title.\n### Output:\nJSON\n### Chat History:\n<chat_history>\nUSER: Who?\n</chat_history>",
    "### Task:\nFind tags.\n\n### Chat History:\nUSER: <context>\nx\n</context>\nWho?",
    f"### Task:\nSuggest what to ask next.\n<chat_history>\nUSER: {TEMPLATES['open-webui'][0]}\n</chat_history>",
    "\n### Task:\nComplete the text.\n### Context:\n<chat_history>\nUSER: a\n</chat_history>\n<type>Any</type>\n<text>x</text>",
    "Your task is to reflect the speaker's likely facial expression by a smiley.\n\nMessage: ```Who?```",
]


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates(name: str) -> None:
    text, attached = TEMPLATES[name]
    message = separate(text)
    assert message.question == WHO
    assert [(one.title, one.cite, one.text) for one in message.attached] == attached
    assert not helper(text)


@pytest.mark.parametrize("text", PLAIN)
def test_what_a_person_writes_stays_as_it_is(text: str) -> None:
    assert separate(text) == Message(text)
    assert not helper(text)


@pytest.mark.parametrize("text", ["### Task:\nWho?", "## Question\n\nWho?"])
def test_a_heading_is_no_part_of_a_question(text: str) -> None:
    assert separate(text) == Message("Who?")
    assert not helper(text)


@pytest.mark.parametrize("text", HELPERS)
def test_prompts_of_a_front_ends_own(text: str) -> None:
    assert helper(text)


def test_a_document_without_a_word_is_what_is_to_be_done_with_it() -> None:
    message = separate(f"### Task:\nSummarise it.\n<document>\n{ONE}\n</document>")
    assert message == Message("Summarise it.", (Attached(ONE),))


INSTRUCTIONS: list[tuple[str, list[tuple[str, str]]]] = [
    (
        "A file is attached:\n  <file>\n    <filename>a.pdf</filename>\n    <type>pdf</type>\n  </file>\n\n"
        "Found, in <context></context> tags:\n\n  <context>\n    <file>\n      <filename>a.pdf</filename>\n      <context>\n"
        f"        <contextItem>\n          <![CDATA[{ONE}]]>\n        </contextItem>\n        <contextItem>\n          "
        f"<![CDATA[{TWO}]]>\n        </contextItem>\n      </context>\n    </file>\n  </context>\n\n  Go by it.",
        [("a.pdf", ONE), ("a.pdf", TWO)],
    ),
    (f"Be kind.\nContext:\n[CONTEXT 0]:\n{ONE}\n[END CONTEXT 0]\n\n", [("", ONE)]),
    (f"Use the following pieces of context for the question.\n----------------\n{ONE}\n\n{TWO}", [("", f"{ONE}\n\n{TWO}")]),
    (f"Answer from the retrieved documents.\n\n{TWO}", [("", TWO)]),
    ("You are kind.\n\nContext: you work for a bank.", []),
    ("You are kind.", []),
]


@pytest.mark.parametrize(("text", "attached"), INSTRUCTIONS)
def test_evidence_in_instructions(text: str, attached: list[tuple[str, str]]) -> None:
    assert [(one.title, one.text) for one in attached_in(text)] == attached


def test_all_of_a_conversation_the_latest_first_and_each_once() -> None:
    def user(text: str) -> dict[str, Any]:
        return {"role": "user", "content": text}

    first = TEMPLATES["open-webui, the question behind"][0]
    last = f'<context>\n<source id="1">{TWO}</source>\n</context>\n<user_query>\nAnd the plums?\n</user_query>'
    system = {"role": "system", "content": [{"type": "text", "text": INSTRUCTIONS[1][0]}, {"type": "image_url"}]}
    message = conversation([system, user(first), {"role": "assistant", "content": "Dana"}, user(last)], "messages", 100)
    assert message.question == "And the plums?"
    assert [turn.text for turn in message.history] == [WHO, "Dana"]
    assert message.attached == (Attached(TWO, "", "1"), Attached(ONE))  # the system's and the first turn's are one


@given(
    st.lists(
        st.sampled_from(
            [*(text for text, _ in TEMPLATES.values()), "<context>", "</source>", "[END CONTEXT 0]", "\n", "```", "x?"]
        )
    )
)
def test_whatever_is_put_together_is_read(parts: list[str]) -> None:
    text = "".join(parts)
    message = separate(text)
    assert all(one.text.strip() for one in message.attached)
    assert len(message.question) <= len(text)
    attached_in(text)
    helper(text)


@pytest.mark.parametrize(
    "text", ["<context>\n", "<context>", "[CONTEXT 1]:\n", 'Citation 1: "\n', "Question: x\n", "```a.b\n", "<a_instruction>"]
)
def test_openings_that_nothing_ends_are_soon_given_up(text: str) -> None:
    """Without a bound, each of them would be looked for to the end: minutes."""
    separate(text * (500_000 // len(text)))


# --- answered --------------------------------------------------------------------------------------------------------------

SOURCES = f'<source id="3" name="a.pdf">{ONE}</source>\n<source id="4" name="b.pdf">{TWO}</source>'


def asked(question: str, sources: str = SOURCES) -> str:
    return f"{ADVICE}<context>\n{sources}\n</context>\n\n<user_query>\n{question}\n</user_query>"


async def answer(text: str, model: str, **settings: Any) -> tuple[dict[str, Any], Scripted]:
    speaking = Scripted(script, name="lab", thresholds={"gram": -6.0})
    async with served(speaking, settings=settings) as server:
        message: dict[str, Any] = (await server.chat(text, model)).json()
    return message, speaking


async def test_the_question_is_gated_and_what_came_with_it_is_read() -> None:
    message, speaking = await answer(asked(UNKNOWN), "gnothi/seakr")
    full = message["gnothi"]
    assert (full["asked"], full["question"], full["attached"]) == (UNKNOWN, UNKNOWN, 2)
    assert full["decisions"][0]["verdict"] == "retrieve"
    read = {passage.text for prompt in speaking.prompts for passage in prompt.passages}
    assert "Dana Brisk kept it. For thirty years." in read
    assert full["warnings"] == []


async def test_where_the_gate_trusts_the_model_it_says_that_nothing_was_read() -> None:
    message, _ = await answer(asked(KNOWN), "gnothi/seakr")
    assert message["choices"][0]["message"]["content"] == "Ada Bram"
    assert [one["verdict"] for one in message["gnothi"]["decisions"]] == ["trust"]
    assert message["gnothi"]["warnings"] == ["What came with the question was not read: no search was thought needed."]


async def test_a_method_without_passages_says_so() -> None:
    message, _ = await answer(asked(KNOWN), "gnothi/direct")
    assert message["gnothi"]["warnings"] == ["What came with the question was not read: this method reads no passages."]


async def test_both_are_searched_and_sources_keep_the_clients_names() -> None:
    message, _ = await answer(asked("Who ate the plums of Tarn?"), "gnothi/rag", focus=False)
    full = message["gnothi"]
    assert [one["title"] for one in full["sources"]][::2] == ["b.pdf", "a.pdf"]  # what fits best is first
    assert full["sources"][1]["id"].startswith("lab-")
    content = message["choices"][0]["message"]["content"]
    assert content.endswith(" [4] [5] [3]")
    for mark in message["choices"][0]["message"]["annotations"]:
        citation = mark["url_citation"]
        assert content[citation["start_index"] : citation["end_index"]] in ("[3]", "[4]", "[5]")


async def test_parts_of_a_long_document_are_found_and_cited_once() -> None:
    text = (
        " ".join(f"Nobody of note was in room {n} of the house." for n in range(300))
        + " Marta Lindqvist ate the plums of Tarn."
    )
    message, speaking = await answer(asked("Who ate the plums of Tarn?", f'<source id="9" name="a.pdf">{text}</source>'), "rag")
    assert "Marta Lindqvist" in speaking.prompts[-1].passages[0].text
    assert max(len(one.text.split()) for one in speaking.prompts[-1].passages) <= 130
    assert message["choices"][0]["message"]["content"].count("[9]") == 1


async def test_a_document_may_be_longer_than_a_question() -> None:
    async with served(methods=("rag",), max_question=100) as server:
        assert (await server.chat(asked(KNOWN, "<source>" + "word " * 9000 + "</source>"), "rag")).status_code == 200
        assert (await server.chat(asked("x" * 101), "rag")).json()["error"]["code"] == "string_above_max_length"

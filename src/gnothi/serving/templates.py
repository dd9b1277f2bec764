"""By what the templates of front ends are known: names of tags, headings and labels, first words. All that is read of them is
here; ``attached`` says what is made of it."""

from __future__ import annotations

import re

EVIDENCE_TAGS = frozenset(
    "attached_file attached_files attachment attachment_file attachments chunk chunks content context contextitem contexts doc "
    "docs document document_content document_contents documents excerpt excerpts file file_content file_contents files "
    "files_info information item knowledge page_content passage passages reference references result results retrieved_context "
    "retrieved_documents search_result search_results snippet snippets source source_content source_context sources".split()
)
"""Those whose content is evidence, or holds what is."""
PLAIN_TAGS = frozenset("context document documents passages sources".split())
"""Of them, those that are looked for within a line, too."""
QUESTION_TAGS = frozenset(
    "input my_question prompt query question user_input user_message user_prompt user_query user_question userquery".split()
)
NAME_TAGS = ("filename", "file_name", "title", "name", "source", "url")
"""What the evidence around them is called, the best first; the same go for attributes."""
CITE_TAGS = ("source_id", "id")
OTHER_TAGS = frozenset("file_index file_lines file_size file_type index mime_type score size type".split())
"""Beside the evidence, and none of it."""

_EVIDENCE_LABELS = (
    r"context(?: information)?(?: is below| below)?|retrieved (?:context|documents|passages)|documents?|sources?|passages?"
    r"|excerpts?|references?(?: materials?)?|search results?|background(?: information)?|knowledge(?: base)?"
    r"|attached (?:files?|documents?)|kontext|dokumente?|quellen?|contexte|documents? fournis|contexto|documentos?|fuentes?"
    r"|fontes?|contesto|documenti|контекст|документы|上下文|参考资料|参考内容|已知信息|资料|背景|コンテキスト|参考情報|문맥"
    r"|컨텍스트|참고 자료"
)
_QUESTION_LABELS = (
    r"(?:the |my )?(?:original )?(?:user'?s? |human |new |final )?(?:question|query)(?: is)?|(?:user )?(?:message|input|prompt)"
    r"|user|human|frage|nutzerfrage|question de l'utilisateur|pregunta|pergunta|domanda|вопрос|问题|用户问题|我的问题是?"
    r"|質問|질문"
)
_ANSWER_LABELS = (
    r"(?:your |the )?(?:helpful |final |short )?answer|(?:your )?response|assistant|ai|antwort|réponse|respuesta|resposta"
    r"|risposta|ответ|答案|回答|답변"
)
_OTHER_LABELS = (
    r"tasks?|rules?|guidelines?|instructions?|examples?(?: of \w+)?|output(?: format)?|role|constraints?|aufgabe|regeln"
)


def _label(names: str) -> re.Pattern[str]:
    """A heading, a word in brackets or stars, or the beginning of a line up to a colon; what follows on the line is content."""
    heading = rf"\#{{1,6}}[ \t]+\**(?:{names})\**[ \t]*[:：]?\**[ \t]*$"
    label = rf"(?:\#{{1,6}}[ \t]+)?(?:\*\*(?:{names})[ \t]*[:：]?\*\*[ \t]*[:：]?|\[(?:{names})\][:：]?|(?:{names})[ \t]*[:：])"
    return re.compile(rf"^[ \t]*(?:{heading}|{label})[ \t]*", re.IGNORECASE | re.MULTILINE)


LABELS = {
    "evidence": _label(_EVIDENCE_LABELS),
    "question": _label(_QUESTION_LABELS),
    "answer": _label(_ANSWER_LABELS),
    "other": _label(_OTHER_LABELS),
}

_MANY = re.IGNORECASE | re.MULTILINE
BLOCKS = (
    # AnythingLLM and the like: [CONTEXT 0]: ... [END CONTEXT 0]
    (re.compile(r"^[ \t]*\[(?P<kind>[a-z][a-z _]{2,30}(?: \d{1,6})?)\]:?[ \t]*\n", _MANY), r"^[ \t]*\[(?:end |/){kind}\]"),
    # Of uploaded files and of web pages: [file name]: ..., [file content begin] ... [file content end]
    (
        re.compile(r"^(?:\[file name\]:[ \t]*(?P<name>[^\n]{1,300})\n)?\[(?P<kind>[a-z][a-z 0-9_]{2,30}) begin\]", _MANY),
        r"\[{kind} end\]",
    ),
    # LM Studio: ** NAME full content ** ... ** end of NAME **, and the parts that fit as Citation 1: "..."
    (re.compile(r"^\*\* (?P<name>[^\n]{1,200}) full content \*\*\n", _MANY), r"^\*\* end of {name} \*\*"),
    (re.compile(r"^citation \d{1,6}: \"", _MANY), r"\"[ \t]*(?:\n[ \t]*\n|\Z)"),
    # Continue and the like: a fence that is called as a file is
    (
        re.compile(
            r"^(?P<fence>`{3,9})(?:\w{1,20} )?(?P<name>[^\s`]{0,200}[./][\w-]{1,40})(?: \([\d-]{1,20}\))?[ \t]*\n", _MANY
        ),
        r"^{fence}[ \t]*$",
    ),
    (
        re.compile(r"^[-=*# ]{0,20}(?:begin|start)(?: of)? (?P<name>\w[^\n]{0,100}?)[-=*# :]{0,20}\n", _MANY),
        r"^[-=*# ]*end(?: of)? {name}\b.*$",
    ),
    # LlamaIndex and the like: between two lines of dashes, after a line that speaks of it
    (
        re.compile(
            r"^[^\n]{0,300}\b(?:context|documents?|information|passages?|excerpts?)\b[^\n]{0,300}\n-{5,99}[ \t]*\n", _MANY
        ),
        r"^-{{5,99}}[ \t]*$",
    ),
)
"""Evidence between marks that are no tags: how it begins, and how it ends, with what the beginning named."""
FENCED = re.compile(r"^Attached document\(s\):\n```md$", re.MULTILINE)
"""LibreChat: several files in one fence, up to the last one, each below its name."""
FILE = re.compile(r"(?:^\n*|\n\n---\n\n)# \"([^\"\n]*)\"\n")

SPEAKS_OF_EVIDENCE = re.compile(
    r"\b(?:following|below|above|provided|given|retrieved|attached)\b.{0,60}\b(?:context|documents?|passages?|information|text|"
    r"excerpts?|sources?|citations?|code|files?|content)\b|"
    r"\b(?:context|documents?|citations?|content) (?:above|below|provided)\b",
    re.IGNORECASE | re.DOTALL,
)
"""An instruction about evidence, that is."""

HELPERS = tuple(
    re.compile(one, re.IGNORECASE)
    for one in (
        r"### task:",  # Open WebUI: title, tags, follow-ups, queries, completion; ``CHAT`` comes with them
        r"your task is to reflect the speaker's likely facial expression",
        r"you have been provided with a set of responses from various models",
        r"create a concise, 3-5 word (?:title|phrase)",
    )
)
CHAT = re.compile(r"^[ \t]*(?:<chat_history>|\#{1,4} chat history)", re.IGNORECASE | re.MULTILINE)
"""What a helper prompt shows of the conversation."""

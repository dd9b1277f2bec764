"""Search-R1 (Jin et al. 2025, arXiv 2503.09516): a model thinks, searches and answers in turns, by tags that it was taught.

Its checkpoints learnt by reinforcement when to search and for what. R1-Searcher's (Song et al. 2025, arXiv 2503.05592) do so
by tags of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, NamedTuple

from gnothi import events
from gnothi.fields import setting
from gnothi.methods.steps.parsing import as_choice
from gnothi.methods.steps.prompts import ask
from gnothi.methods.steps.requirements import require_task
from gnothi.methods.steps.searching import search
from gnothi.methods.steps.settings import GenerationSettings
from gnothi.protocols import LanguageModel, Retriever
from gnothi.types import Answer, Generation, Passage, Question, Task


class Tags(NamedTuple):
    """What opens and closes a query, and the results of a search, and how a reply begins; answers stand in <answer>, thoughts
    in <think>."""

    task: Task
    query: tuple[str, str]
    results: tuple[str, str]
    begun: str = ""


ANSWER = ("<answer>", "</answer>")
THINK = ("<think>", "</think>")
# The instructions are those that the checkpoints were trained with: others are not understood.
TAGS = {
    "search_r1": Tags(
        Task(
            "search_r1",
            "Answer the given question. You must conduct reasoning inside <think> and </think> first every time you get new "
            "information. After reasoning, if you find you lack some knowledge, you can call a search engine by <search> query "
            "</search> and it will return the top searched results between <information> and </information>. You can search as "
            "many times as your want. If you find no further external knowledge needed, you can directly provide the answer "
            "inside <answer> and </answer>, without detailed illustrations. For example, <answer> Beijing </answer>.",
            answer_label="",
        ),
        ("<search>", "</search>"),
        ("<information>", "</information>"),
    ),
    "r1_searcher": Tags(
        Task(
            "r1_searcher",
            "The User asks a question, and the Assistant solves it.\nThe Assistant first thinks about the reasoning process in "
            "the mind and then provides the User with the final answer.\nThe output format of reasoning process and final "
            'answer are enclosed within <think> </think> and <answer> </answer> tags, respectively, i.e., "<think> reasoning '
            'process here </think>\n\n<answer> final answer here </answer>".\nDuring the thinking process, the Assistant can '
            'perform searching for uncertain knowledge if necessary with the format of "<|begin_of_query|> search query (only '
            'keywords) here <|end_of_query|>". **A query must involve only a single triple**.\nThen, the system will provide '
            'the Assistant with helpful information with the format of "<|begin_of_documents|> ...search results... '
            '<|end_of_documents|>".',
            answer_label="Assistant:",
        ),
        ("<|begin_of_query|>", "<|end_of_query|>"),
        ("<|begin_of_documents|>", "<|end_of_documents|>"),
        "<think>",
    ),
}
INVALID = (
    "\nMy previous action is invalid. If I want to search, I should put the query between {} and {}. If I want to give the "
    "final answer, I should put the answer between <answer> and </answer>. Let me try again.\n"
)


@dataclass(frozen=True, slots=True)
class SearchR1(GenerationSettings):
    """Thinks, searches and answers in turns, by the tags of a model trained for it."""

    model: LanguageModel
    retriever: Retriever
    k: int = setting(3, "Passages per search.", at_least=1)
    max_steps: int = setting(4, "B: turns that may search; one more can only answer.", at_least=1)
    tags: Literal["search_r1", "r1_searcher"] = setting("search_r1", "Whose checkpoint the model is: its tags and prompt.")

    _: KW_ONLY
    max_tokens: int = setting(500, "Tokens of one turn.", at_least=1)

    name: ClassVar[str] = "search_r1"
    usual_tokens: ClassVar[int] = 9_000

    def check_settings(self) -> None:
        require_task(self.name, self.model, TAGS[self.tags].task, "Use a checkpoint of Search-R1, or another method.")

    async def __call__(self, question: Question) -> Answer:
        tags = TAGS[self.tags]
        so_far, evidence = tags.begun, tuple[Passage, ...]()
        for step in range(self.max_steps + 1):
            prompt = ask(tags.task, question, so_far=so_far)
            turn = full_text(await self.model.generate(prompt, self.decoding((tags.query[1], ANSWER[1]))))
            query, answer = _inside(turn, tags.query[0]), _inside(turn, ANSWER[0])
            if answer is not None and (query is None or turn.find(ANSWER[0]) < turn.find(tags.query[0])):
                return self._answered(question, answer, so_far + turn + ANSWER[1], evidence)
            last = step == self.max_steps
            verdict = "none" if query is None or last else "search"
            events.emit(events.Drafted(turn.strip(), None))
            events.emit(events.Decided("act", "", None, None, verdict, query or ""))
            if query is None:
                so_far += turn + INVALID.format(*tags.query)
                continue
            so_far += turn + tags.query[1]
            if last:
                break
            passages = await search(self.retriever, query, self.k) if query else ()
            evidence += tuple(one for one in passages if one not in evidence)
            so_far += f"\n\n{tags.results[0]}{_listed(passages)}{tags.results[1]}\n\n"
        return self._answered(question, "", so_far, evidence)

    def _answered(self, question: Question, text: str, reasoning: str, evidence: tuple[Passage, ...]) -> Answer:
        return Answer(as_choice(text, question.choices), reasoning.strip(), evidence)


def full_text(turn: Generation) -> str:
    """The text of a turn, with its thought, which is kept apart from it."""
    return f"{THINK[0]}{turn.thought}{THINK[1]}\n{turn.text}" if turn.thought else turn.text


def _inside(turn: str, opening: str) -> str | None:
    """What follows the first ``opening``; the closing tag ended the turn."""
    _, opened, rest = turn.partition(opening)
    return rest.strip() if opened else None


def _listed(passages: Sequence[Passage]) -> str:
    return "\n".join(f"Doc {number}(Title: {one.title}) {one.text}" for number, one in enumerate(passages, start=1))

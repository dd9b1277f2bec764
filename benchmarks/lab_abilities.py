"""What the shipped lab model can do, by generation through the model protocol: recall, reading, reasoning, judging.

Shares with 95% Wilson intervals; --n questions per row, --model for another lab model, --json for programs.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Awaitable, Callable, Sequence

from gnothi import lab
from gnothi.concurrency import gather
from gnothi.filtering.least_uncertain import LeastUncertain
from gnothi.lab.corpus import passage_text
from gnothi.lab.curriculum import Curriculum, Mix
from gnothi.lab.language import BY_NAME
from gnothi.methods.steps.parsing import read_reply
from gnothi.methods.steps.prompts import ANSWER, DECOMPOSE, EQUIVALENT, REASON, USEFUL, ask
from gnothi.methods.steps.settings import CHAIN_STOPS, SENTENCE_STOPS, SignalSettings
from gnothi.metrics import score
from gnothi.models import load_model
from gnothi.protocols import LanguageModel
from gnothi.seeding import question_scope
from gnothi.signals.kinds.self_report import KNOW
from gnothi.stats.intervals import wilson_interval
from gnothi.types import Decoding, Passage, Prompt, Question, Task

SEED = 7
Check = Callable[[], Awaitable[list[bool]]]


class Abilities:
    def __init__(self, model: LanguageModel, n: int) -> None:
        self.model, self.n = model, n
        self.world = lab.world()
        self.rng = random.Random(SEED)

    def questions(self, kind: lab.Kind, level: str | None = None) -> list[Question]:
        drawn = lab.questions(self.world, kind, 40 * self.n, SEED)
        # Of questions of several facts, those whose facts are all of the level.
        fitting = [q for q in drawn if level is None or {hop["familiarity"] for hop in q.metadata["hops"]} == {level}]
        return fitting[: self.n]

    def passage(self, subject: str) -> Passage:
        facts = self.world.by_subject[subject].values()
        return Passage(f"true/{subject}", passage_text(subject, {f.relation: f.object for f in facts}, self.rng), subject)

    def evidence(self, question: Question, distractors: int) -> list[Passage]:
        subjects = list(dict.fromkeys(hop["subject"] for hop in question.metadata["hops"]))
        peers = [
            e.name
            for e in self.world.entities.values()
            if e.type == self.world.entities[subjects[-1]].type and e.name not in subjects
        ]
        found = [self.passage(name) for name in [*subjects, *self.rng.sample(peers, distractors)]]
        self.rng.shuffle(found)
        return found

    async def reply(self, prompt: Prompt) -> str:
        return (await self.model.generate(prompt, Decoding(max_tokens=100, stop=CHAIN_STOPS))).text

    async def answers(self, questions: Sequence[Question], task: Task = REASON, distractors: int | None = None) -> list[bool]:
        """Exact match; ``distractors`` None is closed book, else as many passages of the same type beside the true ones."""
        prompts = [ask(task, q, self.evidence(q, distractors) if distractors is not None else ()) for q in questions]
        replies = await gather(*(self.reply(prompt) for prompt in prompts))
        given = [read_reply(reply).conclusion if task is REASON else reply.strip() for reply in replies]
        return [score(answer, q.answers)["em"] == 1 for answer, q in zip(given, questions, strict=True)]

    async def reranks(self) -> list[bool]:
        """Of the gold passage and two of the same type, does the lowest U pick the gold one, for never-seen facts."""
        settings = SignalSettings()

        async def one(question: Question, candidates: list[Passage]) -> bool:
            with question_scope(SEED, question.id):
                ranker = LeastUncertain(settings.make_signal("gram"))
                chosen = await ranker(self.model, ask(REASON, question), candidates, settings.decoding(SENTENCE_STOPS))
            return bool(chosen.passage.title == question.metadata["hops"][0]["subject"])

        return await gather(*(one(q, self.evidence(q, 2)) for q in self.questions("one_hop", "never")))

    async def taught(self, kind: str, task: Task) -> list[bool]:
        """Replies to documents of the curriculum drawn afresh, right as a whole."""
        curriculum = Curriculum(self.world, Mix(), seed=SEED)
        cases: list[tuple[Prompt, str]] = []
        while len(cases) < self.n:
            (head, _), (wanted, _) = getattr(curriculum, kind)()
            if f"<{task.name}>" in head:
                cases.append((parse(head, task), wanted.removesuffix("<eos>")))
        replies = await gather(*(self.reply(prompt) for prompt, _ in cases))
        return [reply.strip() == wanted for reply, (_, wanted) in zip(replies, cases, strict=True)]

    async def says_it_knows(self) -> list[bool]:
        questions = [*self.questions("one_hop", "often"), *self.questions("one_hop", "never")]
        replies = await gather(*(self.reply(ask(KNOW, question)) for question in questions))
        return [
            reply.strip().startswith("Yes") == (q.metadata["familiarity"] == "often")
            for reply, q in zip(replies, questions, strict=True)
        ]

    async def describes(self) -> list[bool]:
        """Share of often-seen entities of which every sentence told is true."""
        from gnothi.methods.steps.prompts import DESCRIBE

        names = [e.name for e in self.world.entities.values() if e.familiarity == "often" and self.world.by_subject[e.name]]
        chosen = self.rng.sample(names, min(self.n, len(names)))
        replies = await gather(*(self.reply(Prompt(DESCRIBE, name)) for name in chosen))
        true = [
            {BY_NAME[f.relation].statements[0].format(s=name, o=f.object) for f in self.world.by_subject[name].values()}
            for name in chosen
        ]
        return [
            {f"{told.strip()}." for told in reply.split(".") if told.strip()} == facts
            for reply, facts in zip(replies, true, strict=True)
        ]


def parse(head: str, task: Task) -> Prompt:
    """A curriculum document's opening back into a prompt."""
    text = head.removeprefix("<bos>").removesuffix(f"<{task.name}>").strip()
    told, _, asked = text.partition("<question> ")
    question, _, choices = asked.strip().partition(" <choices> ")
    passages = []
    for number, told_passage in enumerate(part.strip() for part in told.split("<passage> ") if part.strip()):
        title, _, body = told_passage.partition(" : ")
        passages.append(Passage(str(number), body, title))
    return Prompt(task, question, tuple(passages), tuple(choices.split(" / ")) if choices else ())


async def measure(model: LanguageModel, n: int) -> dict[str, list[bool]]:
    able = Abilities(model, n)
    ways: dict[str, Check] = {
        "closed book, one hop, often seen": lambda: able.answers(able.questions("one_hop", "often")),
        "closed book, one hop, seldom seen": lambda: able.answers(able.questions("one_hop", "seldom")),
        "closed book, one hop, never seen": lambda: able.answers(able.questions("one_hop", "never")),
        "closed book, one hop, often seen, short answer": lambda: able.answers(able.questions("one_hop", "often"), ANSWER),
        "closed book, two hops, often seen": lambda: able.answers(able.questions("two_hop", "often")),
        "closed book, comparison, often seen": lambda: able.answers(able.questions("comparison", "often")),
        "closed book, yes or no, often seen": lambda: able.answers(able.questions("yes_no", "often")),
        "gold passage, never seen": lambda: able.answers(able.questions("one_hop", "never"), distractors=0),
        "gold passage and 2 distractors, never seen": lambda: able.answers(able.questions("one_hop", "never"), distractors=2),
        "the same, short answer": lambda: able.answers(able.questions("one_hop", "never"), ANSWER, distractors=2),
        "two hops, both passages, never seen": lambda: able.answers(able.questions("two_hop", "never"), distractors=0),
        "two hops, both passages and 1 distractor": lambda: able.answers(able.questions("two_hop", "never"), distractors=1),
        "comparison, both passages, never seen": lambda: able.answers(able.questions("comparison", "never"), distractors=0),
        "lowest U picks the gold passage of three": able.reranks,
        "says rightly whether it knows": able.says_it_knows,
        "decomposes": lambda: able.taught("decompose", DECOMPOSE),
        "judges whether answers mean the same": lambda: able.taught("judge", EQUIVALENT),
        "judges whether a passage is useful": lambda: able.taught("judge", USEFUL),
        "tells all facts of an often-seen entity": able.describes,
    }
    return {name: await way() for name, way in ways.items()}


async def run(spec: str, n: int) -> dict[str, list[bool]]:
    model = load_model(spec)
    try:
        return await measure(model, n)
    finally:
        await model.aclose()


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="lab")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    results = asyncio.run(run(given.model, given.n))
    rows = {name: (sum(right), len(right), wilson_interval(sum(right), len(right))) for name, right in results.items()}
    if given.json:
        document = {
            name: {"right": hits, "n": n, "share": hits / n, "interval": list(between)}
            for name, (hits, n, between) in rows.items()
        }
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
        return
    for name, (hits, n, (low, high)) in rows.items():
        sys.stdout.write(f"{name:<48} {hits / n:.3f}  [{low:.3f}, {high:.3f}]  of {n}\n")


if __name__ == "__main__":
    main(sys.argv[1:])

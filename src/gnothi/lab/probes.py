"""What the lab model can do, measured without sampling: a reply counts when every token of it is the likeliest one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from gnothi.lab.corpus import passage_text
from gnothi.lab.curriculum import Context, Curriculum, Example, Mix, Segment, segments_of
from gnothi.lab.language import COMPARISON, NO, YES, YES_NO_SAME
from gnothi.lab.world import World

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast


class Probes:
    """Fixed sets of documents by ability. ``measure`` gives name → share of replies that are right as a whole."""

    def __init__(self, world: World, n: int = 64) -> None:
        self.world = world
        self._facts: Context = {(fact.subject, fact.relation): [fact.object] for fact in world.facts}
        self.rng = random.Random(f"{world.seed}/probes/0")
        self.curriculum = Curriculum(world, Mix(), seed=10_000)
        self.sets: dict[str, list[list[Segment]]] = {}
        ways: dict[str, Callable[[], list[Segment] | None]] = {
            "recall often": lambda: self._recall("often"),
            "recall seldom": lambda: self._recall("seldom"),
            "recall never": lambda: self._recall("never"),
            "recall often, short": lambda: self._recall("often", short=True),
            "two hops from memory": lambda: self._two_hop("often", None),
            "comparison from memory": lambda: self._pair("often", evidence=False),
            "read 1 passage": lambda: self._reading(0),
            "read 3 passages": lambda: self._reading(2),
            "read 3 passages, short": lambda: self._reading(2, short=True),
            "two hops, 2 passages": lambda: self._two_hop("never", 0),
            "two hops, 3 passages": lambda: self._two_hop("never", 1),
            "second hop, 1 passage": lambda: self._two_hop("never", -1),
            "comparison, 2 passages": lambda: self._pair("never", evidence=True),
            "memory beside distractors": lambda: self._beside(),
            "choice from memory": lambda: self._choice(),
            "yes or no from memory": lambda: self._yes_no(),
        }
        for name, make in ways.items():
            documents: list[list[Segment]] = []
            while len(documents) < n:
                document = make()
                if document:
                    documents.append(document)
            self.sets[name] = documents

    def measure(self, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> dict[str, float]:
        return {name: _right(model, tokenizer, documents) for name, documents in self.sets.items()}

    def _true_passage(self, subject: str, context: dict[tuple[str, str], list[str]]) -> str:
        facts = self.world.by_subject[subject].values()
        for fact in facts:
            context[subject, fact.relation] = [fact.object]
        return f"<passage> {subject} : {passage_text(subject, {fact.relation: fact.object for fact in facts}, self.rng)}"

    def _document(self, texts: list[str], example: Example, short: bool = False, prefix: int = 0) -> list[Segment]:
        self.rng.shuffle(texts)
        (head, _), reply = segments_of(example, prefix, short)
        return [("<bos>" + " ".join([*texts, head]), False), reply]

    def _subject(self, level: str, kind: str | None = None) -> str:
        names = [name for name in self.curriculum.by_level[level] if kind in (None, self.world.entities[name].type)]
        return self.rng.choice(names)

    def _truth(self) -> Context:
        return dict(self._facts)

    def _recall(self, level: str, short: bool = False) -> list[Segment]:
        subject = self._subject(level)
        relation = self.rng.choice(self.curriculum.relations[self.world.entities[subject].type])
        return self._document([], self.curriculum.one_hop(subject, relation, self._truth()), short)

    def _distractors(self, subject: str, count: int) -> list[str]:
        names = [n for n in self.world.values[self.world.entities[subject].type] if n != subject]
        return [self._true_passage(name, {}) for name in self.rng.sample(names, count)]

    def _reading(self, distractors: int, short: bool = False) -> list[Segment]:
        subject = self._subject("never")
        context: dict[tuple[str, str], list[str]] = {}
        texts = [self._true_passage(subject, context), *self._distractors(subject, distractors)]
        relation = self.rng.choice(self.curriculum.relations[self.world.entities[subject].type])
        return self._document(texts, self.curriculum.one_hop(subject, relation, context), short)

    def _two_hop(self, level: str, distractors: int | None) -> list[Segment] | None:
        """``distractors`` None: from memory; -1: only the second hop's passage, the first sentence standing."""
        subject = self._subject(level)
        bridges = [r for r in self.curriculum.relations[self.world.entities[subject].type] if r.phrase]
        if not bridges:
            return None
        bridge = self.rng.choice(bridges)
        target = self.world.by_subject[subject][bridge.name].object
        if self.world.entities[target].familiarity != level:
            return None
        example = self.curriculum.two_hop(subject, bridge, self._truth())
        if example is None:
            return None
        if distractors is None:
            return self._document([], example)
        if distractors < 0:
            return self._document([self._true_passage(target, {})], example, prefix=1)
        texts = [self._true_passage(subject, {}), self._true_passage(target, {}), *self._distractors(target, distractors)]
        return self._document(texts, example)

    def _pair(self, level: str, evidence: bool) -> list[Segment] | None:
        kind = self.rng.choice(("person", "film", "book"))
        a, b = self._subject(level, kind), self._subject(level, kind)
        if a == b:
            return None
        example = self.curriculum.pair(a, b, {key: value for key, value in self._truth().items() if key[1] in COMPARISON})
        if example is None:
            return None
        return self._document([self._true_passage(a, {}), self._true_passage(b, {})] if evidence else [], example)

    def _beside(self) -> list[Segment]:
        subject = self._subject("often")
        relation = self.rng.choice(self.curriculum.relations[self.world.entities[subject].type])
        return self._document(self._distractors(subject, 2), self.curriculum.one_hop(subject, relation, self._truth()))

    def _choice(self) -> list[Segment]:
        subject = self._subject("often")
        relation = self.rng.choice(self.curriculum.relations[self.world.entities[subject].type])
        return self._document([], self.curriculum.choice(subject, relation, self._truth()))

    def _yes_no(self) -> list[Segment] | None:
        kind = self.rng.choice(("person", "city", "company"))
        a, b = self._subject("often", kind), self._subject("often", kind)
        example = (
            self.curriculum.pair(a, b, {key: value for key, value in self._truth().items() if key[1] in YES_NO_SAME})
            if a != b
            else None
        )
        if example is None or example.answer not in (YES, NO) or (example.answer == YES) != (self.rng.random() < 0.5):
            return None
        return self._document([], example)


def _right(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, documents: list[list[Segment]]) -> float:
    import torch

    from gnothi.lab.tokenizer import encode

    rows = encode(tokenizer, documents)
    width = max(len(ids) for ids, _ in rows)
    inputs = torch.zeros(len(rows), width, dtype=torch.long)
    targets = torch.full((len(rows), width), -100)
    for row, (ids, labels) in enumerate(rows):
        inputs[row, : len(ids)] = torch.tensor(ids)
        targets[row, : len(ids)] = torch.tensor(labels)
    device = model.device
    with torch.inference_mode():
        # Right padding under a causal mask: what stands before is not touched by it.
        likeliest: torch.Tensor = model(input_ids=inputs.to(device), use_cache=False).logits[:, :-1].argmax(-1).cpu()
    expected = targets[:, 1:]
    return float(((likeliest == expected) | (expected == -100)).all(dim=1).float().mean())

"""Which nodes a text names, from the names alone: no model, no training.

Every run of one to four words is looked up as it stands and, failing that, by its words' lemmas. The leftmost run with a name
wins, of those that start together the longest; mentions do not overlap. Runs of nothing but stop words and pronouns are left
alone, and a possessive ending is not part of a name unless the name has it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gnothi.graph.lemmas import Lemmatiser
from gnothi.graph.tables import Tables
from gnothi.graph.words import LONGEST, STOP_WORDS, Word, forms, hashes, words
from gnothi.types import Mention


class Linker:
    """Looks up runs of words by a hash of 64 bits, and then compares the words themselves."""

    def __init__(self, tables: Tables, lemma: Lemmatiser) -> None:
        self._tables = tables
        self._lemma = lemma

    def link(self, text: str) -> tuple[Mention, ...]:
        found = words(text)
        # Where the next word stands that is no stop word, from each word on: a run that ends before it names nothing.
        telling = [len(found)] * (len(found) + 1)
        for place in reversed(range(len(found))):
            word = found[place]
            telling[place] = telling[place + 1] if STOP_WORDS & {word.form, word.possessor} else place
        runs = [
            (start, end)
            for start in range(len(found))
            for end in range(min(start + LONGEST, len(found)), max(start, telling[start]), -1)
        ]
        if not runs:
            return ()
        nodes = self._nodes(text, found, runs)
        mentions = []
        free = 0  # the first word that no mention has
        for (start, end), (node, possessor) in zip(runs, nodes, strict=True):
            if node is not None and start >= free:
                last = found[end - 1]
                mentions.append(Mention(self._tables.name(node), found[start].start, last.end - 2 * possessor))
                free = end
        return tuple(mentions)

    def _nodes(self, text: str, found: list[Word], runs: list[tuple[int, int]]) -> list[tuple[int | None, bool]]:
        """For each run the node it names, and whether without its possessive ending."""
        said = [word.form for word in found]
        # What a word is when it ends a run: without a possessive ending, its lemma.
        endings = [word.possessor for word in found]
        lemmas = [self._lemma(ending or form) for ending, form in zip(endings, said, strict=True)]
        plain = [" ".join(said[start:end]) for start, end in runs]
        bare = plain
        if any(endings):
            bare = [" ".join([*said[start : end - 1], endings[end - 1] or said[end - 1]]) for start, end in runs]
        roots = [" ".join(lemmas[start:end]) for start, end in runs]
        tables = self._tables
        as_it_stands = _lookup(tables.surface_hashes, hashes(plain))
        without_ending = as_it_stands if bare is plain else _lookup(tables.surface_hashes, hashes(bare))
        by_lemma = _lookup(tables.lemma_hashes, hashes(roots))
        nodes: list[tuple[int | None, bool]] = []
        for i, (start, end) in enumerate(runs):
            possessive = bool(endings[end - 1])
            node = None
            if as_it_stands[i] >= 0:
                node = self._surface(as_it_stands[i], plain[i], text[found[start].start : found[end - 1].end])
            if node is not None:
                nodes.append((node, False))
                continue
            if possessive and without_ending[i] >= 0:
                node = self._surface(without_ending[i], bare[i], text[found[start].start : found[end - 1].end - 2])
            if node is None and by_lemma[i] >= 0:
                candidate = int(tables.lemma_nodes[by_lemma[i]])
                if " ".join(map(self._lemma, forms(tables.name(candidate)))) == roots[i]:
                    node = candidate
            nodes.append((node, possessive))
        return nodes

    def _surface(self, place: int, key: str, text: str) -> int | None:
        """Of the names with this form the one that is written as in the text, else the one with the most facts."""
        tables = self._tables
        first = None
        wanted = tables.surface_hashes[place]
        while place < len(tables.surface_hashes) and tables.surface_hashes[place] == wanted:
            node = int(tables.surface_nodes[place])
            name = tables.name(node)
            if name == text:
                return node
            if first is None and " ".join(forms(name)) == key:
                first = node
            place += 1
        return first


def _lookup(table: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> list[int]:
    """The first place of each number in the rising table, -1 where it is not there."""
    if not len(table):
        return [-1] * len(wanted)
    places = np.searchsorted(table, wanted)
    there = table[np.minimum(places, len(table) - 1)] == wanted
    return [int(place) for place in np.where(there, places, -1)]

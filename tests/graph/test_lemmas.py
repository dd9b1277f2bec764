from __future__ import annotations

import sys
from pathlib import Path

import pytest

from gnothi.errors import InvalidSetting, MissingDependency
from gnothi.graph import lemmas
from gnothi.graph.building import build_graph
from gnothi.graph.graph import open_folder, read_manifest
from tests.messages import refused


def test_with_simplemma_it_is_best_where_it_has_the_language() -> None:
    pytest.importorskip("simplemma")
    assert lemmas.best("en") == lemmas.best("de") == lemmas.SIMPLEMMA
    assert lemmas.best("xx") == lemmas.NONE
    assert lemmas.lemmatiser(lemmas.SIMPLEMMA, "de")("häuser") == "haus"
    with refused(InvalidSetting):
        lemmas.lemmatiser(lemmas.SIMPLEMMA, "xx")


def test_without_simplemma(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lemmas, "find_spec", lambda _: None)
    monkeypatch.setitem(sys.modules, "simplemma", None)
    lemmas._simplemma.cache_clear()
    assert lemmas.best("en") == lemmas.PLURALS
    assert lemmas.best("de") == lemmas.NONE
    with refused(MissingDependency):
        lemmas.lemmatiser(lemmas.SIMPLEMMA)


def test_an_unknown_one() -> None:
    with refused(InvalidSetting):
        lemmas.lemmatiser("porter")


def test_a_graph_is_read_with_what_it_was_built_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("simplemma")
    source = tmp_path / "t.tsv"
    source.write_text("child\tis\tsmall\n", encoding="utf-8")
    build_graph([source], tmp_path / "graph")
    assert read_manifest(tmp_path / "graph").lemmatiser == lemmas.SIMPLEMMA
    assert [mention.node for mention in open_folder(tmp_path / "graph").link_blocking("two children")] == ["child"]
    monkeypatch.setitem(sys.modules, "simplemma", None)
    lemmas._simplemma.cache_clear()
    with refused(MissingDependency):
        open_folder(tmp_path / "graph").link_blocking("two children")
    # What is missing is told before anything is read.
    with pytest.raises(MissingDependency):
        build_graph([source], tmp_path / "graph")


def test_a_language_without_lemmas_is_linked_as_it_stands(tmp_path: Path) -> None:
    source = tmp_path / "t.tsv"
    source.write_text("hundo\test\tbesto\n", encoding="utf-8")
    build_graph([source], tmp_path / "graph", language="xx")
    graph = open_folder(tmp_path / "graph")
    assert [mention.node for mention in graph.link_blocking("Hundo kaj hundoj")] == ["hundo"]
    assert read_manifest(tmp_path / "graph").language == "xx"

"""LangChain's own standard tests (``langchain-tests``) of retrievers and tools."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("langchain_tests", reason="langchain-tests is not installed: make test-beside")

from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

import gnothi
from gnothi.adapters.langchain import GnothiRetriever, GnothiTool
from tests.adapters.asked import rag
from tests.command_line import covered_fact

__all__ = ["rag"]


class _Given:
    """An open ``rag`` for the constructors."""

    @pytest.fixture(autouse=True)
    def given(self, rag: gnothi.Rag) -> None:
        self.rag = rag


class TestRetriever(_Given, RetrieversIntegrationTests):
    @property
    def retriever_constructor(self) -> type[GnothiRetriever]:
        return GnothiRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"rag": self.rag}

    @property
    def retriever_query_example(self) -> str:
        return covered_fact()[2]


class _Tool(_Given):
    @property
    def tool_constructor(self) -> type[GnothiTool]:
        return GnothiTool

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        return {"rag": self.rag}

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"question": covered_fact()[2]}


class TestToolUnit(_Tool, ToolsUnitTests):
    pass


class TestToolIntegration(_Tool, ToolsIntegrationTests):
    pass

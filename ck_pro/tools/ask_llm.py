"""`AskLLMTool`: ask a language model a question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ck_pro.exceptions import ContentFiltered, ToolError
from ck_pro.model import LLM
from ck_pro.run_context import RunContext
from ck_pro.tool import Tool


class AskLLMTool(Tool):
    """A question to a language model, without tools or memory."""

    name = "ask_llm"
    on_resume = "again"
    model: LLM | None = None
    """The model that answers; None uses the model of the calling agent."""

    def set_llm(self, llm: LLM | str | dict[str, Any]) -> None:
        """Set the model that answers.

        Args:
            llm: a model, its `call_target`, or its settings.
        """
        self.model = self._converted("model", llm, None)

    def execute(self, query: str) -> str:
        """Ask a language model to explain, translate, summarise, extract or judge a text.

        Args:
            query: the whole question with all text it needs; the model sees nothing else.
        """
        if self.model is None:
            raise ToolError(f"{self.name}: set `model` to use the tool outside a run")
        return str(self.model(_question(query)))

    def bind(self, run: RunContext) -> Callable[..., Any]:
        """Return the function for one run, which logs the call and charges the run's budget."""

        def ask_llm(query: str) -> str:
            model = self.model or run.model
            try:
                return str(run.call_model(model, _question(query), f"tool:{self.name}"))
            except ContentFiltered as e:
                raise ToolError(f"{self.name}: {e}") from None

        ask_llm.__doc__ = self.execute.__doc__
        return ask_llm


def _question(query: str) -> list[dict[str, Any]]:
    if not str(query).strip():
        raise ToolError("ask_llm: the query is empty")
    return [{"role": "user", "content": str(query)}]

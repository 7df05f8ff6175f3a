"""Checks whether an agent's final answer fits its schema, and asks the agent to repair it if not."""

from __future__ import annotations

import json
from typing import Any

from agentctl.domain.states import Reason
from agentctl.domain.text.jsonschema import problem_of
from agentctl.drivers.dialogue import AgentOutcome
from agentctl.drivers.order import Order

#: How often an agent is asked to repair its answer.
REPAIRS = 2
_FENCE = "```"


class FinalAnswer:
    """Checks the final answers of one run."""

    def __init__(self, order: Order) -> None:
        self.schema = order.output_schema
        self._repairs = REPAIRS

    def repair(self, outcome: AgentOutcome) -> str | None:
        """Return the request to repair the answer; None if it fits, or no repairs are left."""
        problem = self._problem(outcome)
        if problem is None or not self._repairs:
            return None
        self._repairs -= 1
        return (
            f"Your answer does not have the form that was asked for: {problem}.\n"
            f"Answer once more, with nothing but one JSON value that fits this schema:\n{json.dumps(self.schema)}"
        )

    def judged(self, outcome: AgentOutcome) -> AgentOutcome:
        """Return the outcome with its answer as plain JSON, or as failed if the answer does not fit."""
        problem = self._problem(outcome)
        if problem is not None:
            message = f"the final answer does not fit the schema: {problem}"
            return outcome._replace(reason=Reason.SCHEMA, message=message)
        if self.schema is not None and outcome.reason in (None, Reason.SCHEMA):
            plain = json.dumps(_value_in(outcome.final_message), ensure_ascii=False)
            # It fits, even if the program reported that it does not.
            return outcome._replace(reason=None, message=None, final_message=plain)
        return outcome

    def _problem(self, outcome: AgentOutcome) -> str | None:
        if self.schema is None or outcome.reason not in (None, Reason.SCHEMA):
            return None
        try:
            value = _value_in(outcome.final_message)
        except (ValueError, RecursionError) as error:
            return f"it is not JSON ({error})"
        return problem_of(value, self.schema)


def _value_in(text: str | None) -> Any:
    """Return the JSON value in an answer; models often put a code fence around it."""
    plain = (text or "").strip()
    first, _, rest = plain.partition("\n")
    body, closing, after = rest.rpartition("\n")
    is_fenced = first.rstrip() in {_FENCE, f"{_FENCE}json"} and closing and after.strip() == _FENCE
    return json.loads(body if is_fenced else plain)

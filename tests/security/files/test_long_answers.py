"""At stake: no answer of an agent, however odd, keeps its driver from hearing a cancel."""

from __future__ import annotations

import time

import pytest

from agentctl.drivers.dialogue import AgentOutcome
from agentctl.drivers.order import Order
from agentctl.worker_programs.agent_host.answer_check import FinalAnswer

FENCED = ["```json\n{}\n```", "```\n{}\n```", "  ```json \n\n {}\n\n  ``` \n", "{}", "```json\r\n{}\r\n```"]
ODD = ["```\n" + "\n" * 200_000 + "x", "```" + " \n" * 100_000 + "x", "```\n" + "\n```" * 50_000 + "x"]


def judged(text: str) -> AgentOutcome:
    order = Order("claude", "claude", "general", "x", output_schema={"type": "object"})
    return FinalAnswer(order).judged(AgentOutcome(final_message=text))


@pytest.mark.parametrize("text", FENCED)
def test_a_fence_around_the_value_is_taken_off(text: str) -> None:
    assert (judged(text).reason, judged(text).final_message) == (None, "{}")


@pytest.mark.parametrize("text", ODD)
def test_what_looks_like_a_fence_takes_no_time(text: str) -> None:
    began = time.monotonic()
    assert judged(text).reason is not None
    assert time.monotonic() - began < 5

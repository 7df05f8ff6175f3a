"""How it ends when it does not end well: never `completed`, and with the right reason."""

from __future__ import annotations

import os
import signal

import pytest

from tests.agents.lab import Lab
from tests.steps import statuses
from tests.support import run, wait_until

REASONS = {400: "model_error", 401: "auth", 429: "rate_limited", 500: "model_error", 529: "overloaded"}
#: More than either program would try before its retries take minutes.
MANY = 10


@pytest.mark.parametrize("status", REASONS)
def test_error(lab: Lab, status: int) -> None:
    """Error {status} of the model's API."""
    lab.configure(cooldownSeconds=0)
    agent = lab.spawn(f"fail={lab.facts.refused_key if status == 401 else status}")
    assert lab.failed(agent) == REASONS[status]


def test_refused_key_at_the_first_sign(lab: Lab) -> None:
    """A refused key ends it at the first sign, not after the program's retries."""
    agent = lab.spawn(f"fail={lab.facts.refused_key}", retries=MANY)
    assert lab.failed(agent) == "auth"
    assert len(lab.standin.requests) <= 3


def test_no_money(lab: Lab) -> None:
    """An account without money ends it at once, with the provider's sentence, and holds nobody else up."""
    agent = lab.spawn(f"fail={lab.facts.no_money}")
    assert lab.failed(agent) == "billing"
    assert any(word in lab.end(agent)["message"].lower() for word in ("credit", "quota"))
    assert lab.completed(lab.spawn("text", name="next"))


def test_too_long(lab: Lab) -> None:
    """A conversation that is longer than the model reads: context."""
    assert lab.failed(lab.spawn(f"fail={lab.facts.too_long}")) == "context"


def test_cut_by_the_model(lab: Lab) -> None:
    """An answer that the model's limit of output cuts: truncated."""
    assert lab.failed(lab.spawn("stop=max_tokens")) == "truncated"


def test_declined(lab: Lab) -> None:
    """A model that declines: refused, or told where the program passes nothing on."""
    end = lab.end(lab.spawn("stop=refusal"))
    assert end["status"] == "failed" or "without a word" in end["message"], end


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_program_signalled(lab: Lab, name: str) -> None:
    """{name} to the program by somebody else: signal."""
    agent = lab.spawn("slow")
    lab.arrived("slow")
    wait_until(lambda: [one for one in lab.activity(agent) if one["type"] == "message"])
    os.kill(lab.program_of(agent), getattr(signal, name))
    assert lab.failed(agent) == "signal"


def test_retries_without_progress(lab: Lab) -> None:
    """Retries without progress are stopped at retryCeilingSeconds."""
    lab.configure(retryCeilingSeconds=lab.facts.ceiling_s)
    agent = lab.spawn("fail=500", retries=MANY)
    assert lab.failed(agent) == "model_error"


def test_stream_cut(lab: Lab) -> None:
    """A stream that is cut off after a part of the answer: truncated."""
    agent = lab.spawn("cut=part")
    assert lab.failed(agent) == "truncated"


def test_connection_lost(lab: Lab) -> None:
    """A connection that is lost in the middle of a word: never completed."""
    agent = lab.spawn("cut=word")
    assert lab.failed(agent) in {"truncated", "model_error"}


def test_no_answer(lab: Lab) -> None:
    """No answer at all: stalled, and not killed."""
    lab.configure(stallSeconds=2)
    agent = lab.spawn("mute")
    told = run("wait-any", "--json", "--for", "stalled", timeout=40).json
    assert told["agentInstance"] == agent
    assert statuses()[agent] == "running"
    lab.cancel(agent)

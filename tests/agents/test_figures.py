"""What an agent has used up, as every view tells it: what the model served, whatever the end was."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest

from tests.agents.lab import Lab
from tests.agents.wire import CACHED_TOKENS, INPUT_TOKENS, OUTPUT_TOKENS
from tests.support import run, wait_until

#: The scenario, how many requests of it are answered to their end, and one that is broken off in its answer.
ENDINGS = {"text": (1, 0), "tool": (2, 0), "fail=400": (0, 0), "cancelled": (0, 1), "killed": (0, 1)}


@pytest.mark.parametrize("ending", ENDINGS)
def test_figures(lab: Lab, ending: str) -> None:
    """The figures of all views are one, and what was served: {ending}."""
    if ending in {"cancelled", "killed"}:
        agent = lab.spawn("slow")
        lab.arrived("slow")
        wait_until(lambda: [one for one in lab.activity(agent) if one["type"] == "message" and "name" in one])
        wait_until(lambda: lab.standin.words > 2)
        if ending == "cancelled":
            lab.cancel(agent)
        else:
            os.kill(lab.program_of(agent), signal.SIGKILL)
    else:
        agent = lab.spawn(ending, "--permissions", "allow")
    lab.end(agent)
    told = figures(lab, agent)
    assert all(view == told["result"] for view in told.values()), told
    whole, broken = ENDINGS[ending]
    one = {"input": INPUT_TOKENS - CACHED_TOKENS, "output": OUTPUT_TOKENS, "cached": CACHED_TOKENS}
    if broken:  # Of a broken answer a program knows at most what its beginning told.
        assert told["result"]["input"] in {None, 0, one["input"]}
    elif whole:
        assert told["result"] == {key: whole * tokens for key, tokens in one.items()}
    else:  # Nothing was served, and most programs say nothing then.
        assert set(told["result"].values()) <= {None, 0}


def figures(lab: Lab, agent: str) -> dict[str, dict[str, Any]]:
    """Return the tokens that each view tells."""
    (used,) = run("usage", "--json").json["workers"]
    (listed,) = run("list", "--json").json
    (tree,) = run("tree", "--json").json["workers"]
    views = {"result": lab.result(agent)["usage"], "usage": used, "list": listed["usage"], "tree": tree["tokens"]}
    return {view: {key: told[key] for key in ("input", "output", "cached")} for view, told in views.items()}

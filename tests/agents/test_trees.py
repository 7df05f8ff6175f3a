"""What holds for a tree of tasks holds with real programs: what they report is charged, what they answer is checked."""

from __future__ import annotations

import json
from pathlib import Path

from tests.agents.lab import Lab
from tests.support import run


def test_tokens_of_a_tree(lab: Lab) -> None:
    """The tokens of a whole tree: who breaks the limit ends as budget."""
    lab.configure(maxTokens=200)
    agent = lab.spawn("endless", "--permissions", "allow")
    assert lab.failed(agent) == "budget"
    told = run("usage", "--json").json
    assert told["total"]["tokens"] > 200
    assert told["left"] == {"maxTokens": 0}


def test_an_answer_in_no_form(lab: Lab, tmp_path: Path) -> None:
    """--output-schema: an answer that does not fit is sent back twice, and then it fails."""
    schema = tmp_path / "schema.json"
    head = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    schema.write_text(json.dumps(head), encoding="utf-8")
    agent = lab.spawn("text", "--output-schema", str(schema))
    assert lab.failed(agent) == "schema"
    told = [row for row in lab.activity(agent, "message") if "does not have the form" in row["text"]]
    assert len(told) == 2

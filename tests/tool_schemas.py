"""Makes the schemas of what the tools answer: `python -m tests.tool_schemas > agentctl/tools/answer_schemas.json`."""

from __future__ import annotations

import json
from typing import Any

from agentctl.interfaces.web.document_schemas import declared_type, schemas_of
from agentctl.tools import agents, delegation, waiting, worker
from agentctl.tools.definition import Tool
from agentctl.tools.subtasks import SUBTASK_ANSWERS

#: What any tool may answer instead: an error, or that its caller is being stopped.
INSTEAD = "FailedCall | StoppedCall"
MODULES = (agents, delegation, waiting, worker)
TOOLS = tuple(value for module in MODULES for value in vars(module).values() if isinstance(value, Tool))


def made() -> dict[str, Any]:
    """Return what tools declare -> its schema. Each stands alone, and is that of an object, as the protocol asks."""
    declared = sorted({one.answers for one in TOOLS if one.answers is not None} | {SUBTASK_ANSWERS})
    found = {}
    for answers in declared:
        schemas, parts = schemas_of({"": declared_type(f"{answers} | {INSTEAD}")}, template="#/$defs/{model}")
        found[answers] = {"type": "object", **schemas[""], "$defs": parts}
    return found


def text() -> str:
    """Return the file's content."""
    return json.dumps(made(), separators=(",", ":"), sort_keys=True) + "\n"


if __name__ == "__main__":
    print(text(), end="")

"""Plays an agent program without a model: it speaks Claude Code's two-way protocol and asks for one permission.

When the answer arrives, it writes down CLOCK_MONOTONIC, which is the same for all processes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

#: Names the file for the time at which the answer arrived.
TOLD = "BENCH_TOLD"
SESSION = "00000000-0000-4000-8000-000000000000"
CALL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "touch it", "description": "touch"}}
USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5}


def main() -> None:
    """Read messages until the input is closed."""
    if sys.argv[1:] == ["--version"]:
        print("2.1.332 (Claude Code)")
        return
    for line in sys.stdin:
        arrived = time.monotonic_ns()
        message = json.loads(line)
        match message["type"]:
            case "control_request":
                answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
                say(type="control_response", response=answer)
            case "user":
                begin()
            case "control_response":
                with open(os.environ[TOLD], "wb") as file:
                    file.write(b"%d" % arrived)
                finish()


def begin() -> None:
    """Send what Claude Code sends up to its question whether it may run a command."""
    say(type="system", subtype="init", tools=["Bash"], model="none", permissionMode="default", cwd=os.getcwd())
    assistant("msg_1", CALL)
    about = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": CALL["input"], "cwd": os.getcwd()}
    request = {"subtype": "hook_callback", "callback_id": "agentctl", "tool_use_id": CALL["id"], "input": about}
    say(type="control_request", request_id="permission-1", request=request)


def finish() -> None:
    """Send what Claude Code sends at its end."""
    result = {"type": "tool_result", "tool_use_id": CALL["id"], "content": "done", "is_error": False}
    say(type="user", message={"role": "user", "content": [result]}, parent_tool_use_id=None)
    assistant("msg_2", {"type": "text", "text": "Done."})
    say(
        type="result", subtype="success", is_error=False, num_turns=2, result="Done.", stop_reason="end_turn",
        usage=USAGE, modelUsage={}, total_cost_usd=0, permission_denials=[],
    )  # fmt: skip


def assistant(identity: str, block: dict[str, Any]) -> None:
    """Say one block of the model's answer."""
    message = {"id": identity, "type": "message", "role": "assistant", "model": "none", "content": [block]}
    say(type="assistant", message={**message, "stop_reason": None, "usage": USAGE}, parent_tool_use_id=None)


def say(**message: Any) -> None:
    """Print one line."""
    sys.stdout.write(json.dumps({**message, "session_id": SESSION}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

"""Plays a program that speaks the Agent Client Protocol, without a model: it asks for one permission, then ends."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

#: Names the file for the time at which the answer arrived, as in `bench/agent.py`.
TOLD = "BENCH_TOLD"
SESSION = "session-1"
CALL = {"toolCallId": "call-1", "title": "touch it", "kind": "execute", "rawInput": {"command": "touch it"}}
#: That of opencode, as agentctl configures it: the driver is that program's.
MODES = {"currentModeId": "agentctl", "availableModes": [{"id": "agentctl", "name": "agentctl"}]}
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def main() -> None:
    """Read messages until the input is closed."""
    prompt: Any = None
    for line in sys.stdin:
        arrived = time.monotonic_ns()
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                say(id=message["id"], result={"protocolVersion": 1})
            case "session/new":
                say(id=message["id"], result={"sessionId": SESSION, "modes": MODES})
            case "session/prompt":
                prompt = message["id"]
                asked = {"sessionId": SESSION, "toolCall": CALL, "options": OPTIONS}
                say(id="permission-1", method="session/request_permission", params=asked)
            case None:
                with open(os.environ[TOLD], "wb") as file:
                    file.write(b"%d" % arrived)
                say(id=prompt, result={"stopReason": "end_turn"})


def say(**message: Any) -> None:
    """Print one line."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

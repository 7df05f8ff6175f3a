"""Plays opencode over the Agent Client Protocol, without a model: it asks for one permission, then ends."""

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
#: Names the settings that agentctl gives opencode, with the agent that is its mode.
SETTINGS = "OPENCODE_CONFIG_CONTENT"
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


def main() -> None:
    """Tell the person's settings, which deny nothing; or read messages until the input is closed."""
    if sys.argv[1:] == ["debug", "config"]:
        say_plainly({})
        return
    mode = json.loads(os.environ[SETTINGS])["default_agent"]
    modes = {"currentModeId": mode, "availableModes": [{"id": mode, "name": mode}]}
    prompt: Any = None
    for line in sys.stdin:
        arrived = time.monotonic_ns()
        message = json.loads(line)
        match message.get("method"):
            case "initialize":
                say(id=message["id"], result={"protocolVersion": 1})
            case "session/new":
                say(id=message["id"], result={"sessionId": SESSION, "modes": modes})
            case "session/prompt":
                prompt = message["id"]
                asked = {"sessionId": SESSION, "toolCall": CALL, "options": OPTIONS}
                say(id="permission-1", method="session/request_permission", params=asked)
            case None:
                with open(os.environ[TOLD], "wb") as file:
                    file.write(b"%d" % arrived)
                say(id=prompt, result={"stopReason": "end_turn"})


def say(**message: Any) -> None:
    """Print a message."""
    say_plainly({"jsonrpc": "2.0", **message})


def say_plainly(value: Any) -> None:
    """Print one line."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

"""A Codex without a model: its app-server does what the last line of the prompt says.

say TEXT            answers TEXT
instructions        answers with what its developer has told it
hang                works until it is interrupted
mounts FOLDER       does as well, in a sandbox that has made its mount points here and in FOLDER
play FILE           does what the Python in FILE says, and answers "done"

CODEX_VERSION is its version, and OLD_CODEX makes it an older one than that:

no-server           there is no such subcommand; its last line has no end
older               does not know how to open a thread
no-profiles         opens a thread, and knows of no permission profiles
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

THREAD, TURN = {"threadId": "thread-1"}, {"turnId": "turn-1"}
OLD = os.environ.get("OLD_CODEX", "")


class AppServer:
    """A server of one thread."""

    def __init__(self) -> None:
        self.instructions = ""

    def serve(self) -> None:
        """Answer each line until the input is closed."""
        for line in sys.stdin:
            message = json.loads(line)
            if "id" in message:
                self.answer(message["id"], message["method"], message.get("params", {}))

    def answer(self, number: int, method: str, params: dict[str, Any]) -> None:
        """Answer a call."""
        match method:
            case "thread/start" | "thread/resume" if OLD == "older":
                say(id=number, error={"code": -32600, "message": f"Invalid request: unknown variant `{method}`"})
            case "thread/start" | "thread/resume":
                say(id=number, result=self.opened(params))
            case "turn/start":
                say(id=number, result={"turn": {"id": TURN["turnId"]}})
                self.turn(params["input"][0]["text"].strip().splitlines()[-1])
            case "turn/interrupt":
                say(id=number, result={})
                end("interrupted")
            case _:
                say(id=number, result={"codexHome": os.environ.get("CODEX_HOME"), "config": {}})

    def opened(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return a thread as it was ordered."""
        self.instructions = params.get("developerInstructions", "")
        thread: dict[str, Any] = {
            name: params[name] for name in ("approvalPolicy", "approvalsReviewer") if name in params
        }
        thread["thread"] = {"id": THREAD["threadId"]}
        if OLD != "no-profiles":
            thread["activePermissionProfile"] = {"id": params["permissions"]}
            thread["sandbox"] = {"type": "readOnly" if "read-only" in params["permissions"] else "workspaceWrite"}
        return thread

    def turn(self, line: str) -> None:
        """Take a turn."""
        verb, _, rest = line.partition(" ")
        if verb == "mounts":
            for place in (Path(), Path(rest)):
                for name in (".agents", ".aws", ".codex", ".git"):
                    (place / name).mkdir(exist_ok=True)
        if verb in {"hang", "mounts"}:
            item = {"type": "commandExecution", "id": "item_0", "command": "sleep", "status": "inProgress"}
            notify("item/started", item=item)
            return
        if verb == "play":
            exec(Path(rest).read_text(encoding="utf-8"), {})
        text = {"play": "done", "instructions": self.instructions}.get(verb, rest)
        notify("item/completed", item={"type": "agentMessage", "id": "item_1", "text": text})
        end("completed")


def end(status: str) -> None:
    """End the turn."""
    notify("turn/completed", turn={"id": TURN["turnId"], "status": status})


def notify(method: str, **params: Any) -> None:
    """Print a line about the thread."""
    say(method=method, params={**THREAD, **TURN, **params})


def say(**message: Any) -> None:
    """Print one line."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Do what the command line says."""
    if sys.argv[1] == "--version":
        print(f"codex-cli {os.environ.get('CODEX_VERSION', '0.171.0')}")
    elif OLD == "no-server":
        sys.stdout.write('{"method": "warning", "params": {"message": "last words"}}')
        sys.stderr.write("error: unrecognized subcommand 'app-server'\n")
        return 2
    else:
        AppServer().serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())

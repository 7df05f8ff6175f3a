"""A Codex without a model. Its app-server does what APP_SERVER says, its `exec` what the last line of the prompt says.

APP_SERVER:
(nothing)           ends at once, its last line without an end: there is no such subcommand
waits FILE          ends like this when there is such a file
older               does not know how to open a thread
dies                opens a thread, and ends when it is told to begin a turn
loose               opens a thread, and knows of no permission profiles, nor does its `sandbox`

exec:
say TEXT            answers TEXT
argv                answers with its own arguments
prompt              answers with the whole prompt
hang                works until it is interrupted
mounts FOLDER       does as well, in a sandbox that has made its mount points here and in FOLDER
play FILE           does what the Python in FILE says, and answers "done"
once FILE           gets an error from its provider the first time; when it goes on, it answers
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

#: Of one turn; a thread tells the sum of all its turns.
USAGE = {"input_tokens": 10, "cached_input_tokens": 3, "output_tokens": 5}
THREAD = "thread-1"


def app_server() -> int:
    """Do not serve."""
    verb, _, file = os.environ.get("APP_SERVER", "").partition(" ")
    if verb in {"older", "dies", "loose"}:
        return serve(knows_threads=verb != "older", knows_profiles=verb != "loose")
    while verb == "waits" and not Path(file).exists():
        time.sleep(0.01)
    sys.stdout.write('{"method": "warning", "params": {"message": "last words"}}')
    sys.stderr.write("error: unrecognized subcommand 'app-server'\n")
    return 2


def serve(*, knows_threads: bool, knows_profiles: bool) -> int:
    """Open a thread where it is known how, and end when a turn is to begin."""
    for line in sys.stdin:
        message = json.loads(line)
        match message["method"]:
            case "initialize":
                say(id=message["id"], result={})
            case "thread/start" if not knows_threads:
                error = {"code": -32600, "message": "Invalid request: unknown variant `thread/start`"}
                say(id=message["id"], error=error)
            case "config/read":
                say(id=message["id"], result={"config": {}})
            case "thread/start":
                params = message["params"]
                active = {name: params[name] for name in ("approvalPolicy", "approvalsReviewer")}
                if knows_profiles:
                    active["activePermissionProfile"] = {"id": params["permissions"]}
                    active["sandbox"] = {"type": "workspaceWrite", "networkAccess": False}
                say(id=message["id"], result={"thread": {"id": THREAD}, **active})
            case "turn/start":
                return 2
    return 0


def execute() -> int:
    """Take one turn."""
    Path("was-executed").touch()
    prompt = sys.stdin.read()
    say(type="thread.started", thread_id=THREAD)
    say(type="turn.started")
    verb, _, rest = prompt.strip().splitlines()[-1].partition(" ")
    if verb == "mounts":
        for place in (Path(), Path(rest)):
            for name in (".agents", ".aws", ".codex", ".git"):
                (place / name).mkdir(exist_ok=True)
    if verb in {"hang", "mounts"}:
        signal.signal(signal.SIGINT, lambda *_: sys.exit(1))
        say(type="item.started", item={"id": "item_0", "type": "command_execution", "status": "in_progress"})
        while True:
            signal.pause()
    if verb == "once" and not Path(rest).exists():
        Path(rest).touch()
        answer("I begin")
        say(type="turn.failed", error={"message": "unexpected status 500 Internal Server Error"})
        return 1
    if verb == "play":
        exec(Path(rest).read_text(encoding="utf-8"), {})
    answer({"play": "done", "argv": json.dumps(sys.argv[1:]), "prompt": prompt, "once": "at last"}.get(verb, rest))
    turns = Path("turns")
    with turns.open("a", encoding="ascii") as file:
        file.write("x")
    count = len(turns.read_text(encoding="ascii"))
    say(type="turn.completed", usage={key: value * count for key, value in USAGE.items()})
    return 0


def answer(text: str) -> None:
    """Say something."""
    say(type="item.completed", item={"id": "item_1", "type": "agent_message", "text": text})


def say(**message: Any) -> None:
    """Print one line."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Do what the command line says."""
    match sys.argv[1]:
        case "--version":
            print("codex-cli 0.1.0")
        case "mcp":
            print(json.dumps([{"name": "persons"}]))
        case "app-server":
            return app_server()
        case "sandbox":
            return 2 if "-P" in sys.argv and os.environ.get("APP_SERVER") == "loose" else 0
        case "exec":
            return execute()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""An agent program without a model, in the protocol of Claude Code: the first word of a message says what it does.

say TEXT            answers TEXT
permit COMMAND      asks whether it may run COMMAND, then answers "allowed" or "denied"
question            asks which colour, then answers with it
show NAME           answers with a variable of its environment, or "unset"
argv                answers with its own arguments
hang                works until it is interrupted
deaf FILE           works, ignores every signal and message, with a child of its own session; their pids go to FILE
retry STATUS        tells for ever that its provider answers STATUS
once STATUS FILE    fails with STATUS the first time, and answers the second time
used PERCENT        tells that so much of its account's window of five hours is used up, and answers
stopped SECONDS FILE  is stopped by that window, which is reset in so many seconds; answers when it goes on
large N             prints a line of N megabytes, then answers
cut                 ends in the middle of its turn
crash               ends with exit code 3 and a word on stderr
odd                 prints lines that no version of the protocol knows, then answers
play FILE           does what the Python in FILE says: `me` is this program, `say` prints a line
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 3, "output_tokens": 5}
MODEL = "none"
#: The requests by which the driver's hook was called.
HOOKED: set[str] = set()


class Program:
    """A session."""

    def __init__(self) -> None:
        self.session = _option("--session-id") or _option("--resume") or "00000000-0000-4000-8000-000000000000"
        self.turns = self.asked = 0
        self.waiting: dict[str, Any] = {}
        #: The messages that no turn has taken up yet: another was not over, or the user was asked.
        self.later: list[dict[str, Any]] = []
        self.buffer = b""

    def run(self) -> None:
        """Read until the input is closed."""
        while True:
            chunk = os.read(0, 1 << 16)
            if not chunk:
                return
            self.buffer += chunk
            while b"\n" in self.buffer:
                line, _, self.buffer = self.buffer.partition(b"\n")
                self.take(json.loads(line))

    def take(self, message: dict[str, Any]) -> None:
        """Take a message of the driver."""
        match message["type"]:
            case "control_request":
                answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
                say(type="control_response", response=answer)
                if message["request"]["subtype"] == "interrupt" and self.waiting:
                    self.result("", subtype="error_during_execution", is_error=True)
                    self.go_on()
            case "user":
                self.later.append(message)
                self.go_on()
            case "control_response":
                self.told(message["response"])

    def go_on(self) -> None:
        """Take up what was said meanwhile; while the user is asked, a turn is not over."""
        while self.later and "question" not in self.waiting.values():
            message = self.later.pop(0)
            # As Claude Code does since 2.1: its driver knows by this that what it has sent is not all done by a result.
            say(type="command_lifecycle", command_uuid=message["uuid"], state="started")
            self.turn(message["message"]["content"][0]["text"])

    def turn(self, prompt: str) -> None:
        """Do what a prompt says."""
        self.turns += 1
        say(type="system", subtype="init", tools=["Bash"], model=MODEL, session_id=self.session, cwd=os.getcwd())
        verb, _, rest = prompt.strip().splitlines()[-1].partition(" ")
        getattr(self, f"do_{verb}", self.do_say)(rest)

    def told(self, response: dict[str, Any]) -> None:
        """Take the answer to what was asked; the driver's hook was called for calls that were made anyway."""
        if response["request_id"] in HOOKED:
            return
        asked = self.waiting.pop(response["request_id"])
        answer = response.get("response") or {}
        if callable(asked):
            asked(answer)
        elif asked == "question":
            self.answer(next(iter(answer["updatedInput"]["answers"].values())))
            self.go_on()
        else:
            self.answer("allowed" if answer.get("behavior") == "allow" else "denied")

    def do_say(self, rest: str) -> None:
        """Answer."""
        self.answer(rest)

    def do_show(self, rest: str) -> None:
        """Tell of the environment."""
        self.answer(os.environ.get(rest, "unset"))

    def do_argv(self, _rest: str) -> None:
        """Tell of the command line."""
        self.answer(json.dumps(sys.argv[1:]))

    def do_permit(self, rest: str) -> None:
        """Ask for a permission."""
        self.ask("Bash", {"command": rest}, "permission")

    def do_question(self, _rest: str) -> None:
        """Ask the user."""
        options = [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]
        one = {"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": False}
        self.ask("AskUserQuestion", {"questions": [one]}, "question")

    def ask(self, tool: str, arguments: dict[str, Any], kind: Any) -> str:
        """Make a tool call that needs an answer, which `kind` tells or takes; return the name of the request."""
        self.asked += 1
        call, request_id = f"toolu_{self.asked}", f"request-{self.asked}"
        self.assistant({"type": "tool_use", "id": call, "name": tool, "input": arguments})
        self.waiting[request_id] = kind
        request = {"subtype": "can_use_tool", "tool_name": tool, "input": arguments, "tool_use_id": call}
        say(type="control_request", request_id=request_id, request=request)
        return request_id

    def do_hang(self, _rest: str) -> None:
        """Work until the interrupt."""
        self.assistant({"type": "text", "text": "working"})
        self.waiting["hang"] = "hang"

    def do_deaf(self, rest: str) -> None:
        """Work, and hear nothing."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        child = subprocess.Popen(["/bin/sh", "-c", "trap '' INT TERM; sleep 600 & wait; wait"], start_new_session=True)
        partial = Path(f"{rest}.new")
        partial.write_text(f"{os.getpid()} {child.pid}", encoding="ascii")
        partial.rename(rest)
        while True:
            select.select([], [], [])

    def do_retry(self, rest: str) -> None:
        """Fail for ever."""
        for attempt in range(1, 10_000):
            say(
                type="system", subtype="api_retry", attempt=attempt, max_retries=10, retry_delay_ms=10,
                error_status=int(rest), error="server_error", uuid=f"retry-{attempt}",
            )  # fmt: skip
            time.sleep(0.02)

    def do_once(self, rest: str) -> None:
        """Fail, and do better at the second try."""
        status, file = rest.split()
        if Path(file).exists():
            self.answer("at last")
        else:
            Path(file).touch()
            self.error(int(status))

    def do_used(self, rest: str) -> None:
        """Tell of a window."""
        window(float(rest), 1800, "allowed_warning" if float(rest) >= 80 else "allowed")
        self.answer("so much")

    def do_stopped(self, rest: str) -> None:
        """Work, and be stopped in the middle of it."""
        seconds, file = rest.split()
        with Path(file).open("a", encoding="ascii") as tries:
            tries.write("x")
        if Path(file).stat().st_size > 1:
            self.answer("at last")
            return
        self.assistant({"type": "text", "text": "half of it is done"})
        self.stop(float(seconds))

    def stop(self, seconds: float, kind: str = "five_hour") -> None:
        """Be stopped by a window."""
        window(100, seconds, "rejected", kind)
        text = "You've hit your limit"
        self.assistant({"type": "text", "text": text}, model="<synthetic>", error="rate_limit")
        self.result(text, is_error=True, api_error_status=429)

    def do_You(self, _rest: str) -> None:  # noqa: N802 - a word of the prompt to go on
        """Go on: what was asked before is known from the session."""
        self.answer("at last")

    def do_large(self, rest: str) -> None:
        """Print a line that no buffer expects."""
        self.assistant({"type": "text", "text": "x" * (int(rest) << 20)})
        self.answer("it was large")

    def do_cut(self, _rest: str) -> None:
        """End too early."""
        self.assistant({"type": "text", "text": "I will"})
        sys.exit(0)

    def do_crash(self, _rest: str) -> None:
        """End badly."""
        sys.stderr.write("out of cheese\n")
        sys.exit(3)

    def do_odd(self, _rest: str) -> None:
        """Print what nobody expects."""
        sys.stdout.write("no JSON at all\n\n[1]\n")
        say(type="from_the_future", shape="unknown")
        self.answer("odd, but well")

    def do_play(self, rest: str) -> None:
        """Do anything."""
        exec(Path(rest).read_text(encoding="utf-8"), {"me": self, "say": say})

    def error(self, status: int) -> None:
        """End a turn as a failed request of the provider does."""
        text = f"API Error: {status} refused"
        error = "rate_limit" if status in (429, 529) else "server_error"
        self.assistant({"type": "text", "text": text}, model="<synthetic>", error=error)
        self.result(text, is_error=True, api_error_status=status)

    def answer(self, text: str) -> None:
        """Answer, and end the turn."""
        self.assistant({"type": "text", "text": text})
        self.result(text)

    def assistant(self, block: dict[str, Any], model: str = MODEL, **more: Any) -> None:
        """Say one block of the model's answer."""
        message = {"id": f"msg_{self.turns}", "type": "message", "role": "assistant", "model": model, "usage": USAGE}
        whole = {**message, "content": [block], "stop_reason": None}
        say(type="assistant", message=whole, parent_tool_use_id=None, session_id=self.session, **more)

    def result(self, text: str, **more: Any) -> None:
        """End the turn."""
        self.waiting.clear()
        tokens = {
            "inputTokens": 10 * self.turns,
            "outputTokens": 5 * self.turns,
            "cacheReadInputTokens": 3 * self.turns,
        }
        told = {
            "type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": text,
            "stop_reason": "end_turn", "usage": USAGE, "modelUsage": {MODEL: tokens}, "total_cost_usd": 0.25,
            "permission_denials": [], "session_id": self.session,
        }  # fmt: skip
        say(**{**told, **more})


def window(percent: float, seconds: float, status: str, kind: str = "five_hour") -> None:
    """Tell of a usage window of the account."""
    at = time.time() + seconds
    windows = {kind: {"utilization": percent / 100, "resetsAt": at, "status": status}}
    info = {"status": status, "resetsAt": at, "rateLimitType": kind, "unifiedWindows": windows}
    say(type="rate_limit_event", rate_limit_info=info)


def say(**message: Any) -> None:
    """Print one line; before that, for each result of a call, that the driver's hook is called for it."""
    for call in _results(message):
        HOOKED.add(f"hook-{call}")
        about = {"hook_event_name": "PreToolUse", "tool_name": "TodoWrite", "tool_input": {}, "cwd": os.getcwd()}
        request = {"subtype": "hook_callback", "callback_id": "agentctl", "tool_use_id": call, "input": about}
        _print({"type": "control_request", "request_id": f"hook-{call}", "request": request})
    _print(message)


def _results(message: dict[str, Any]) -> list[Any]:
    content = message.get("message", {}).get("content", []) if message.get("type") == "user" else []
    return [block["tool_use_id"] for block in content if isinstance(block, dict) and "tool_use_id" in block]


def _print(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def _option(name: str) -> str | None:
    for index, part in enumerate(sys.argv):
        if part == name:
            return sys.argv[index + 1]
        if part.startswith(f"{name}="):
            return part.partition("=")[2]
    return None


if __name__ == "__main__":
    if sys.argv[1:] == ["--version"]:
        print("2.1.332 (Claude Code)")
    else:
        Program().run()

"""Three agent programs without a model, for README and its picture: `vendors.py NAME ARGS`.

`claude`, `codex` and `opencode` speak the protocols of the programs of these names. A word of the prompt says what each
does; they change only files of the folder in which they work.

write       Claude Code asks whether it may write a program, writes it, and answers
fix         Claude Code mends a file, asks whether it may run the tests, and answers
where, and  Claude Code answers
review      Codex reads, and answers; with `large` in the prompt it goes on reading until it is interrupted
document    opencode changes a file, and answers

`vendors.py put FOLDER NAME...` writes programs of these names into a folder. VENDORS_GATE names a file: Claude Code
goes on after an answer once it is there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from agent_program import MODEL, Program, say
from codex_program import AppServer, end, notify

HELLO = 'print("Hello, world!")\n'
LOGIN = "src/login.py"
#: What is wrong with it, and what is right.
FLAKY, MENDED = (
    "    time.sleep(0.1)  # the server is up by then\n",
    "    while not server.is_up():\n        server.wait_for_change()\n",
)
USAGE = "docs/usage.md"
#: A line that says how often a session is asked for, and a new one below it.
SAID, SAYS = ("The session is asked for once.\n", "When it has ended, the next call begins another one.\n")
#: What it answers to a question, by its first word.
ANSWERS = {
    "Where": "In src/login.py: test_login is the one test of it.",
    "And": "Nobody else: it is called from there alone.",
}
#: The repository in which they mend and document.
FILES = {
    LOGIN: f"""from app import server


def test_login() -> None:
    server.start()
{FLAKY}    assert server.login("ada").is_known
""",
    USAGE: f"# Usage\n\n{SAID}",
}


class Claude(Program):
    """Claude Code."""

    def turn(self, prompt: str) -> None:
        """Write, or mend."""
        self.turns += 1
        say(type="system", subtype="init", tools=["Bash"], model=MODEL, session_id=self.session, cwd=os.getcwd())
        last = prompt.strip().splitlines()[-1]
        if last.startswith("Fix"):
            self.mend()
        elif last.startswith("Write"):
            arguments = {"file_path": os.path.abspath("hello.py"), "content": HELLO}
            self.ask("Write", arguments, self.written)
        else:
            self.finish(ANSWERS[last.partition(" ")[0]], 6_000)

    def written(self, answer: dict[str, Any]) -> None:
        """Write the file, if it may."""
        if answer.get("behavior") != "allow":
            self.finish("I have written nothing: it was denied.", 9_000)
            return
        _wait_for_gate()
        Path("hello.py").write_text(HELLO, encoding="utf-8")
        self.end("toolu_1", "File created successfully.")
        self.finish("hello.py is written.", 14_000)

    def mend(self) -> None:
        """Change the file, and ask for the tests."""
        self.begin("Read", {"file_path": LOGIN}, "toolu_r")
        self.end("toolu_r", Path(LOGIN).read_text(encoding="utf-8"))
        self.begin("Edit", {"file_path": LOGIN, "old_string": FLAKY, "new_string": MENDED}, "toolu_e")
        _replace(LOGIN, FLAKY, MENDED)
        self.end("toolu_e", "The file has been updated.")
        self.block({"type": "text", "text": "It waits for the server now."}, 23_000)
        self.ask(
            "Bash", {"command": "pytest --count 20 tests/test_login.py", "description": "Run it 20 times"}, self.ran
        )

    def ran(self, answer: dict[str, Any]) -> None:
        """Run the tests, and answer."""
        _wait_for_gate()
        self.end("toolu_1", "20 passed" if answer.get("behavior") == "allow" else "denied")
        self.finish("The test was faster than the server. It waits for it now: 20 of 20 runs pass.", 31_000)

    def begin(self, name: str, arguments: dict[str, Any], call: str) -> None:
        """Begin a call."""
        self.block({"type": "tool_use", "id": call, "name": name, "input": arguments})

    def end(self, call: str, result: str) -> None:
        """End a call."""
        content = [{"type": "tool_result", "tool_use_id": call, "content": result}]
        message = {"role": "user", "content": content}
        say(type="user", message=message, parent_tool_use_id=None, session_id=self.session)

    def block(self, block: dict[str, Any], tokens: int = 0) -> None:
        """Say one block of an answer."""
        self.blocks = getattr(self, "blocks", 0) + 1
        message = {
            "id": f"msg_{self.blocks}", "type": "message", "role": "assistant", "model": MODEL, "content": [block],
            "stop_reason": None, "usage": {"input_tokens": tokens, "output_tokens": tokens // 9},
        }  # fmt: skip
        say(type="assistant", message=message, parent_tool_use_id=None, session_id=self.session)

    def finish(self, text: str, tokens: int) -> None:
        """Answer, and report what was used."""
        self.block({"type": "text", "text": text})
        used = {"inputTokens": tokens, "outputTokens": tokens // 9, "cacheReadInputTokens": 0}
        cost = tokens * 4.1e-6
        self.result(text, modelUsage={MODEL: {**used, "costUSD": cost}}, total_cost_usd=cost)


class Codex(AppServer):
    """Codex."""

    def turn(self, line: str) -> None:
        """Read, and answer, or not yet."""
        command = "rg --line-number session src"
        item = {"type": "commandExecution", "id": "item_0", "command": command, "status": "inProgress"}
        notify("item/started", item=item)
        if "large" in line:
            return
        notify("item/completed", item={**item, "status": "completed", "exitCode": 0, "aggregatedOutput": ""})
        text = "Nothing to change: it is short, and it does what its name says."
        notify("item/completed", item={"type": "agentMessage", "id": "item_1", "text": text})
        end("completed")


async def opencode() -> None:
    """Be opencode, which speaks ACP."""
    # The others do without the extra that brings this.
    from acp import InitializeResponse, NewSessionResponse, PromptResponse, run_agent, update_agent_message_text
    from acp.helpers import start_edit_tool_call, tool_diff_content, update_tool_call

    class OpenCode:
        """An agent that documents."""

        def on_connect(self, conn: Any) -> None:
            self.client = conn

        async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
            return InitializeResponse(protocol_version=protocol_version)

        async def new_session(self, **_: Any) -> NewSessionResponse:
            mode = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])["default_agent"]
            modes = {"currentModeId": mode, "availableModes": [{"id": mode, "name": mode}]}
            return NewSessionResponse.model_validate({"sessionId": "ses_1", "modes": modes})

        async def prompt(self, session_id: str, **_: Any) -> PromptResponse:
            old, new = _replace(USAGE, SAID, SAID + SAYS)
            call = start_edit_tool_call("call_1", f"Edit {USAGE}", USAGE, tool_diff_content(USAGE, new, old))
            done = "usage.md says what happens when a session has ended."
            for update in (call, update_tool_call("call_1", status="completed"), update_agent_message_text(done)):
                await self.client.session_update(session_id, update)
            return PromptResponse(stop_reason="end_turn")

    await run_agent(OpenCode())  # type: ignore[arg-type]


def _wait_for_gate() -> None:
    gate = os.environ.get("VENDORS_GATE")
    while gate and not Path(gate).exists():
        time.sleep(0.02)


def _replace(file: str, old: str, new: str) -> tuple[str, str]:
    """Replace a text in a file; return all of it, before and after."""
    before = Path(file).read_text(encoding="utf-8")
    after = before.replace(old, new)
    Path(file).write_text(after, encoding="utf-8")
    return before, after


VERSIONS = {"claude": "2.1.332 (Claude Code)", "codex": "codex-cli 0.171.0", "opencode": "1.18.33"}


def put_programs(folder: Path, *names: str) -> None:
    """Write programs of these names into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        program = folder / name
        line = f'exec "{sys.executable}" "{Path(__file__).resolve()}" {name} "$@"'
        program.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        program.chmod(0o700)


def main(name: str, args: list[str]) -> None:
    """Be a program, or write some."""
    if name == "put":
        put_programs(Path(args[0]), *args[1:])
    elif args == ["--version"]:
        print(VERSIONS[name])
    elif name == "claude":
        Claude().run()
    elif name == "codex":
        Codex().serve()
    elif args[:1] == ["debug"]:
        print("{}")
    else:
        import asyncio

        asyncio.run(opencode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

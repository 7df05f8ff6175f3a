"""Makes watch-*.svg beside it: `agentctl watch` over a real run, in a folder of its own, with real processes.

    python docs/pictures/watch.py

It needs the extra `tui`. Its agents are run by the driver of Claude Code. Only the model is a stand-in, which does what
the last line of its prompt says: `map TEXT`, `build`, `permit COMMAND`, `ask QUESTION` or `edit FILE`.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
REPOSITORY = HERE.parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests" / "workers"), str(HERE.parent)]

from stage import after, agent, agentctl, command, repository, stage  # type: ignore[import-not-found]  # noqa: E402

from agent_program import MODEL, Program, say  # type: ignore[import-not-found]  # noqa: E402

SIZE = (112, 30)
FILES = {"src/rows.ts": 'export const rows = (text) => text.split("\\n")\n'}
_CELLS = """
export function normalize(row) {
  const cells = row.split(",").map((cell) => cell.trim())
  return cells.filter((cell) => cell.length > 0)
}
"""


class StandIn(Program):  # type: ignore[misc]
    """The stand-in for a model."""

    def do_map(self, rest: str) -> None:
        """Read, and answer."""
        self.call("Grep", {"pattern": "passport"}, "src/auth/session.ts: 14 matches", "toolu_g")
        self.done(rest, 61_000)

    def do_permit(self, rest: str) -> None:
        """Ask for a permission."""
        self.call(
            "Read", {"file_path": "migrations/0042_passkeys.sql"}, "ALTER TABLE users ADD COLUMN passkey", "toolu_r"
        )
        self.say_text("The migration is written. I want to try it on the local database.")
        self.use(23_000)
        self.ask("Bash", {"command": rest, "description": "Apply the migration locally"}, "permission")

    def do_ask(self, rest: str) -> None:
        """Ask the person."""
        options = [
            {"label": "Beside passwords", "description": "users choose"},
            {"label": "Instead of passwords", "description": "a migration for all"},
        ]
        self.use(48_000)
        one = {"question": rest, "header": "Plan", "options": options, "multiSelect": False}
        self.ask("AskUserQuestion", {"questions": [one]}, lambda _: self.done("Done.", 48_000))

    def do_build(self, _rest: str) -> None:
        """Work with two sub-agents, one of which is still at work."""
        self.say_text("Two parts: the form, and the request that registers a key.")
        for name, kind in (("a1", "explore"), ("a2", "general-purpose")):
            what = "Find the places where a session begins" if name == "a1" else "Write the form for a new key"
            self.begin("Task", {"description": what, "subagent_type": kind, "prompt": what}, name)
        self.call("Grep", {"pattern": "createSession"}, "src/auth/session.ts:31", "b1", "a1")
        self.call("Read", {"file_path": "src/auth/session.ts"}, _CELLS, "b2", "a1")
        self.end("a1", "A session begins in createSession, called from three places.")
        self.call("Read", {"file_path": "src/ui/Login.tsx"}, "export function Login() {", "b3", "a2")
        self.call("Edit", {"file_path": "src/ui/Login.tsx"}, "The file has been updated.", "b4", "a2")
        self.begin("Bash", {"command": "npm run typecheck", "description": "Check the types"}, "b5", "a2")
        self.use(212_000)
        self.waiting["hang"] = "hang"

    def do_edit(self, rest: str) -> None:
        """Change a file, and answer."""
        Path(rest).write_text(_CELLS, encoding="utf-8")
        self.call("Write", {"file_path": rest}, "File created successfully.", "toolu_w")
        self.done("I moved the parsing of a row into a function of its own, and cover the empty cells by it.", 34_000)

    # -- the protocol ----------------------------------------------------------------------------------------------

    def begin(self, name: str, arguments: dict[str, Any], call: str, parent: str | None = None) -> None:
        """Begin a call."""
        self.block({"type": "tool_use", "id": call, "name": name, "input": arguments}, parent)

    def end(self, call: str, result: str, parent: str | None = None) -> None:
        """End a call."""
        content = [{"type": "tool_result", "tool_use_id": call, "content": result}]
        say(
            type="user",
            message={"role": "user", "content": content},
            parent_tool_use_id=parent,
            session_id=self.session,
        )

    def call(self, name: str, arguments: dict[str, Any], result: str, call: str, parent: str | None = None) -> None:
        """Make a call and take its result."""
        self.begin(name, arguments, call, parent)
        time.sleep(0.1)
        self.end(call, result, parent)

    def say_text(self, text: str) -> None:
        """Say something."""
        self.block({"type": "text", "text": text})

    def block(self, block: dict[str, Any], parent: str | None = None, tokens: int = 0) -> None:
        """Say one block of an answer."""
        self.blocks = getattr(self, "blocks", 0) + 1
        usage = {"input_tokens": tokens, "output_tokens": tokens // 9, "cache_read_input_tokens": 4 * tokens}
        message = {
            "id": f"msg_{self.blocks}", "type": "message", "role": "assistant", "model": MODEL, "usage": usage,
            "content": [block], "stop_reason": None,
        }  # fmt: skip
        say(type="assistant", message=message, parent_tool_use_id=parent, session_id=self.session)

    def use(self, tokens: int) -> None:
        """Report what was used so far."""
        self.block({"type": "text", "text": "I go on."}, tokens=tokens)

    def done(self, text: str, tokens: int) -> None:
        """Answer, and report what was used."""
        self.say_text(text)
        out = tokens // 9
        used = {"inputTokens": tokens - out, "outputTokens": out, "cacheReadInputTokens": 4 * tokens}
        self.result(text, modelUsage={MODEL: {**used, "costUSD": tokens * 4.1e-6}}, total_cost_usd=tokens * 4.1e-6)


def run() -> None:
    """Let the workers run until each stands where the pictures want it."""
    agentctl("new", "Read CSV with empty cells", "--id", "csv")
    agent("csv-rows", "general", "edit src/rows.ts", "--worktree", "--permissions", "allow")
    agentctl("wait", "csv-rows")
    agentctl("new", "Passkeys beside passwords", "--id", "passkeys", "--max-concurrent", "6")
    command("checkout", "sleep 0.3")
    agent(
        "map", "explore", "map Sessions begin in src/auth/session.ts; passport is used in 14 places, all in src/auth."
    )
    command("licences", "echo 'GPL in a dependency' >&2; exit 1")
    agentctl("wait", "checkout", "map", "licences", check=False)
    agent("web", "general", "build")
    agent("plan", "plan", "ask Shall passkeys stand beside passwords, or instead of them?")
    agent("migrate", "general", "permit npm run migrate -- --database local --to 0042_passkeys")
    command("unit", "while :; do echo ok; sleep 1; done")
    command("e2e", "sleep 2", *after("unit", "web"))
    agentctl("wait-any", "plan", "--for", "blocked")
    agentctl("wait-any", "migrate", "--for", "blocked")


async def take() -> None:
    """Press keys, and take the pictures."""
    from agentctl.adapters.taskdir import Root
    from agentctl.interfaces.screen.app import WatchApp

    app = WatchApp(Root(os.path.join(os.getcwd(), ".agentctl")))
    async with app.run_test(size=SIZE) as pilot:
        await asyncio.sleep(1)
        await go_to(pilot, "migrate")
        keep(app.export_screenshot(title="agentctl watch"), "watch-need")
        await go_to(pilot, "web")
        await open_groups(pilot)
        await pilot.press("space", "t", "g")
        await go_to(pilot, "passkeys")
        await go_to(pilot, "web")
        keep(app.export_screenshot(title="agentctl watch: the tree"), "watch-tree")
        await press(pilot, "enter")
        keep(app.export_screenshot(title="agentctl watch: one worker"), "watch-worker")
        await pilot.press("escape", "t", "g")
        await go_to(pilot, "csv-rows")
        await press(pilot, "enter", "4")
        keep(app.export_screenshot(title="agentctl watch: what it changed"), "watch-diff")
        await pilot.press("escape")
        await go_to(pilot, "migrate")
        await press(pilot, "y")
        keep(app.export_screenshot(title="agentctl watch: why"), "watch-why")


async def press(pilot: Any, *keys: str) -> None:
    """Press keys, and let the screen follow."""
    await pilot.press(*keys)
    await asyncio.sleep(1.5)
    await pilot.pause()


async def go_to(pilot: Any, name: str) -> None:
    """Move the cursor to a worker or a task."""
    listed = pilot.app.fleet_list
    for _ in range(50):
        at = listed.line.key if listed.line is not None else None
        if name in (at, getattr(at, "instance", None)):
            break
        await pilot.press("j" if listed.line is not listed.lines[-1] else "g")
    await press(pilot)


async def open_groups(pilot: Any) -> None:
    """Open a worker, and every sub-agent below it."""
    listed = pilot.app.fleet_list
    await press(pilot, "l")
    while (
        folded := next((at for at, line in enumerate(listed.lines) if line.node and line.is_folded), None)
    ) is not None:
        listed.go_to(folded)
        await pilot.press("l")


def keep(svg: str, name: str) -> None:
    """Write a picture that needs nothing from elsewhere: the font is one that the reader has."""
    svg = re.sub(r"@font-face \{.*?\}\n?", "", svg, flags=re.DOTALL).replace("Fira Code", "ui-monospace, monospace")
    # A text is stretched to the length that it had: one with another folder in it would be drawn too wide.
    for folder in (os.path.realpath(os.getcwd()), os.getcwd()):
        of_path = re.compile(rf'textLength="[^"]*"([^>]*>[^<]*){re.escape(folder)}')
        svg = of_path.sub(r"\1/home/me/webapp", svg)
    HERE.with_name(f"{name}.svg").write_text(svg, encoding="utf-8")


def main() -> None:
    """Make the pictures, or be the agent program in them."""
    if sys.argv[1:2] == ["as-model"]:
        StandIn().run()
        return
    with stage("webapp", HERE):
        repository(FILES)
        run()
        try:
            asyncio.run(take())
        finally:
            agentctl("cancel", "--all", check=False)


if __name__ == "__main__":
    main()

"""A root in which something of each kind is to be seen, for tests that go through all views."""

from __future__ import annotations

from pathlib import Path

from tests.agent_steps import agent, blocked, ends, plays
from tests.repositories import new_repository
from tests.steps import Task, spawn
from tests.support import run, worker

WORKER_TABS = ("transcript", "output", "diff", "result", "questions", "timeline", "events", "why", "details")
TASK_TABS = ("", "timeline", "usage", "events")

_EDITS = """
from pathlib import Path
Path("a.txt").write_text("one\\ntwo\\nthree\\nfour\\n")
Path("sub/c.txt").unlink()
Path("a-long-name-of-a-new-file-in-this-folder-that-wraps-on-a-phone.txt").write_text("word " * 80 + "\\n")

def block(one, parent=None):
    message = {"id": "msg", "type": "message", "role": "assistant", "model": "none",
               "usage": {"input_tokens": 41000, "output_tokens": 900}, "content": [one], "stop_reason": None}
    say(type="assistant", message=message, parent_tool_use_id=parent, session_id=me.session)

def end(call, result, parent=None, **more):
    content = [{"type": "tool_result", "tool_use_id": call, "content": result, **more}]
    say(type="user", message={"role": "user", "content": content}, parent_tool_use_id=parent, session_id=me.session)

block({"type": "thinking", "thinking": "The form comes first.", "signature": ""})
block({"type": "text", "text": "Two parts: the form, and the request that registers a key."})
block({"type": "tool_use", "id": "t1", "name": "Grep", "input": {"pattern": "createSession", "path": "src"}})
end("t1", "\\n".join(f"src/auth/session-{number}.ts:31: createSession()" for number in range(40)))
block({"type": "tool_use", "id": "a1", "name": "Task",
       "input": {"description": "Find sessions", "subagent_type": "explore", "prompt": "Find sessions"}})
block({"type": "tool_use", "id": "b1", "name": "Read", "input": {"file_path": "src/session.ts"}}, "a1")
end("b1", "export const session = 1;", "a1")
end("a1", "Three places.")
block({"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "npm test"}})
end("t2", "1 failing", is_error=True)
"""


def populate(task: Task, folder: Path) -> None:
    """Make workers in each state: they are named after it."""
    new_repository(Path.cwd())
    spawn(worker("exits", 3), "--wait", name="failed", check=False)
    agent(plays(folder, _EDITS + "me.answer('I moved the parsing into a function.')\n"), "--worktree", name="reviewed")
    ends("reviewed")
    agent(plays(folder, "from pathlib import Path\nPath('a.txt').write_text('other\\n')\nme.answer('Done.')\n"),
          "--worktree", name="overlaps")  # fmt: skip
    ends("overlaps")
    spawn(worker("exits", 0), "--wait", name="completed")
    Path("report.md").write_text("# found", encoding="ascii")
    spawn(["agentctl", "report", "result", "--file", "report.md"], "--wait", name="told")
    bar = r"printf '\r\033[K\033[36m%d\033[0m of 3' 1 2 3"
    spawn(["sh", "-c", rf"{bar}; printf '\033[31merror\033[0m no such file\n' >&2; exit 1"], "--wait", name="prints",
          check=False)  # fmt: skip
    spawn(["sh", "-c", "seq 300; echo to stderr >&2; exec sleep 600"], name="running")
    agent(plays(folder, _EDITS + "me.waiting['hang'] = 'hang'\n"), name="agent")
    spawn(["true"], "--queue", "--after", "running", name="queued")
    spawn(worker("sleeps", 600), name="paused")
    run("pause", "paused")
    spawn(worker("asks", "--kind", "confirm", "Delete the old logs?"), name="asks")
    blocked("asks")
    spawn(worker("asks", "--kind", "input", "--default", "main", "Which branch?"), name="writes")
    blocked("writes")
    lines = "\\n".join(f"echo step {number}" for number in range(60))
    agent(
        plays(folder, f"me.ask('Bash', {{'command': '{lines}', 'description': 'Try it'}}, 'permission')"), name="permit"
    )
    blocked("permit")
    run("new", "Another task, whose title is longer than a phone is wide, and which has nothing in it", "--id", "other")


def views() -> list[str]:
    """Return the addresses of all views of that root."""
    return [
        "/", "/tree", "/search", "/search?q=createSession", "/search?q=nothing-has-this", "/nothing/here",
        *(f"/tasks/t1/{tab}".rstrip("/") for tab in TASK_TABS), "/tasks/other",
        *(f"/tasks/t1/workers/reviewed/{tab}" for tab in WORKER_TABS),
        "/tasks/t1/workers/told/result", "/tasks/t1/workers/prints/why", "/tasks/t1/workers/prints/output",
        "/tasks/t1/workers/prints/output?stream=both", "/tasks/t1/workers/running/output?stream=stdout&find=12",
        "/tasks/t1/workers/reviewed/transcript?at=0&find=form", "/tasks/t1/workers/asks/questions",
        "/tasks/t1/workers/agent", "/tasks/t1/workers/running", "/tasks/t1/workers/permit", "/tasks/t1/workers/asks",
        "/tasks/t1/workers/writes/why", "/tasks/t1/workers/queued/why", "/tasks/t1/workers/nobody",
    ]  # fmt: skip

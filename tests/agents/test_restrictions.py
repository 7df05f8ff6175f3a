"""What is forbidden does not happen, whatever a person has allowed a program for themselves."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError
from acp.schema import McpServerStdio

from tests.acp_steps import Editor, allows, denies, edited
from tests.agents.lab import PATIENCE_S, Lab
from tests.agents.loose import LooseProgram, Steps, loose_programs
from tests.agents.loose.tool_server import write_server
from tests.agents.restrictions import combinations, editors, guards, kinds
from tests.steps import statuses
from tests.support import run, wait_until

#: Kinds of calls in which the file that they make is not named.
INDIRECT = {"skill", "sub-agent"}
DENIED_BY_DEFINITION = "restricted"


@pytest.fixture
def loose(lab: Lab) -> Iterator[LooseProgram]:
    """The program, as loose as a person can make it. An agent that was seen to do nothing may still be there."""
    yield loose_programs()[lab.program]
    lab.crash()


@pytest.mark.parametrize(("program", "restriction", "kind", "beginning"), combinations())
def test_restriction(lab: Lab, loose: LooseProgram, restriction: str, kind: str, beginning: str) -> None:
    """Restricted by {restriction}, though the person's own settings of it allow everything: no file, in any way."""
    target = outside(lab) / "forbidden"
    play(lab, loose.steps(lab, kind, target))
    agent = begin(lab, loose, beginning, *options(lab, loose, restriction, kind))
    if restriction == "ask" and kind not in getattr(loose, "REFUSED", ()):
        question = asked_about(lab, agent, kind, target)
        assert statuses()[agent] == "blocked", question
        lab.cancel(agent)
    else:
        settled(lab, agent)
        assert was_tried(lab, agent, target), f"the model never tried: {lab.account(agent)}"
    nothing_was_made(lab, agent)


@pytest.mark.parametrize(("program", "restriction", "kind"), editors())
def test_in_an_editor(
    lab: Lab, loose: LooseProgram, restriction: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an editor, restricted by {restriction}, though the person's own settings allow everything: no file."""
    target = outside(lab) / "forbidden"
    play(lab, loose.steps(lab, kind, target))
    for name, value in {**lab.environ(), **loose.loosen(lab)}.items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    editor = Editor(denies)

    async def twice() -> None:
        async with edited(*options(lab, loose, restriction, kind), "--driver", lab.program, editor=editor):
            session = await editor.opened()
            await editor.says(session, "SCENARIO:text")
            with suppress(RequestError):  # A denial ends some programs.
                await editor.says(session, "SCENARIO:steps")

    asyncio.run(twice())
    (worker,) = run("list", "--json").json
    agent = named(worker)
    nothing_was_made(lab, agent)
    assert was_tried(lab, agent, target), f"the model never tried: {lab.account(agent)}"
    if restriction == "ask" and kind not in getattr(loose, "REFUSED", ()):
        named_by = target.name if kind not in INDIRECT else ""
        assert any(named_by in str(call) for call, _ in editor.dialogs), editor.dialogs


@pytest.mark.parametrize("program", ["claude-agent-acp", "codex-acp"])
@pytest.mark.parametrize("kind", ["write", "edit"])
def test_text_of_a_change(lab: Lab, loose: LooseProgram, kind: str) -> None:
    """Asked about a change of files ({kind}): its text is shown, and it can be allowed."""
    target = outside(lab) / "asked"
    steps = loose.steps(lab, kind, target)
    play(lab, steps)
    agent = begin(lab, loose, "new", "--permissions", "ask")
    # A program may ask before it has told the text: it is asked about again then.
    question = wait_until(
        lambda: asked_about(lab, agent, kind, target), what="all of it", accept=lambda question: "isCut" not in question
    )
    assert any(text in str(question["arguments"]) for text in ("written\\n", "edited\\n", "'x\\n", "'new\\n")), question
    settled(lab, agent, answer="allow")
    assert target.exists(), lab.account(agent)


@pytest.mark.parametrize("program", ["codex-acp"])
def test_command_that_looks_like_a_search(lab: Lab) -> None:
    """A command that the program takes for a search: a rule for shells denies it, one for searches allows none."""
    target = outside(lab) / "there"
    target.write_text("x", encoding="utf-8")
    play(lab, [[["out", f"find {target} -delete"]]])
    for name, answers in ("a1", {"Bash": "deny", "*": "allow"}), ("a2", {"Grep": "allow", "Read": "allow"}):
        rules = [{"tool": tool, "answer": answer} for tool, answer in answers.items()]
        lab.spawn("steps", "--permissions", json.dumps(rules), name=name)
    question = asked_about(lab, "a2", "shell", target)
    assert (question["tool"], "-delete" in question["arguments"]["command"]) == ("Bash", True)
    assert lab.end("a1")["status"] in {"completed", "failed"}
    assert not lab.open_questions("a1")
    lab.cancel("a2")
    assert target.exists()


@pytest.mark.parametrize("program", ["codex", "codex-acp"])
@pytest.mark.parametrize("policy", ["deny", "ask"])
def test_server_of_an_editor(lab: Lab, loose: LooseProgram, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool of an editor's MCP server, which calls itself harmless, under --permissions {policy}: not unasked."""
    target = outside(lab) / "forbidden"
    play(lab, loose.steps(lab, "MCP", target))
    for name, value in lab.environ().items():
        monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
    script = write_server(lab.folder / "server.py")
    server = McpServerStdio(name="w", command=sys.executable, args=[str(script)], env=[])
    editor = Editor(allows)

    async def once() -> None:
        async with edited("--permissions", policy, "--driver", lab.program, editor=editor):
            session = await editor.opened(servers=[server])
            with suppress(RequestError):  # A denial ends some programs.
                await editor.says(session, "SCENARIO:steps")

    asyncio.run(once())
    (worker,) = run("list", "--json").json
    assert was_tried(lab, named(worker), target), f"the model never tried: {lab.account(named(worker))}"
    is_asked = policy == "ask"
    assert (len(editor.dialogs), target.exists()) == (int(is_asked), is_asked), lab.account(named(worker))


@pytest.mark.parametrize(("program", "kind"), kinds())
def test_own_allowances(lab: Lab, loose: LooseProgram, kind: str) -> None:
    """--permissions own: what the person's own settings allow is done unasked."""
    target = outside(lab) / "allowed"
    play(lab, loose.steps(lab, kind, target))
    agent = begin(lab, loose, "new", "--permissions", "own")
    wait_until(target.exists, timeout_s=PATIENCE_S, what=f"{target}: {lab.account(agent)}")
    lab.end(agent)
    assert not lab.task.events("interaction.requested")


@pytest.mark.parametrize(("program", "guard"), guards())
@pytest.mark.parametrize("policy", ["allow", "ask"])
def test_own_denials(lab: Lab, loose: LooseProgram, policy: str, guard: str) -> None:
    """The person's own denial by a {guard} holds under --permissions {policy}."""
    target = outside(lab) / "guarded"
    play(lab, loose.guarded(lab, guard, target))
    agent = begin(lab, loose, "new", "--permissions", policy)
    settled(lab, agent, answer="allow")
    nothing_was_made(lab, agent)
    assert was_tried(lab, agent, target)


# -- steps -------------------------------------------------------------------------------------------------------------


def outside(lab: Lab) -> Path:
    """Return a folder that is not the agent's, and in no sandbox's temporary ones."""
    folder = lab.folder / "outside"
    folder.mkdir(exist_ok=True)
    return folder


def play(lab: Lab, steps: Steps) -> None:
    """Have the model make these calls, one reply after the other."""
    (lab.work / "steps.json").write_text(json.dumps(steps), encoding="utf-8")


def options(lab: Lab, loose: LooseProgram, restriction: str, kind: str) -> list[str]:
    """Return the options of `spawn` that restrict."""
    tool = loose.tool(kind)
    match restriction:
        case "a deny rule":
            rules = [{"tool": tool, "answer": "deny"}, {"tool": "*", "answer": "allow"}]
            return ["--permissions", json.dumps(rules)]
        case "disallowedTools":
            define(lab, f"disallowedTools: {tool}")
            return ["--agent", DENIED_BY_DEFINITION, "--permissions", "allow"]
        case "read-only":
            return ["--agent", "explore", "--permissions", "allow"]
        case _:
            return ["--permissions", restriction]


def define(lab: Lab, line: str) -> None:
    folder = lab.task.path.parent.parent / "agents"
    folder.mkdir(exist_ok=True)
    text = f"---\nname: {DENIED_BY_DEFINITION}\ndescription: Of a test.\n{line}\n---\nYou work.\n"
    (folder / f"{DENIED_BY_DEFINITION}.md").write_text(text, encoding="utf-8")


def begin(lab: Lab, loose: LooseProgram, beginning: str, *chosen: str) -> str:
    """Bring an agent to where its model makes the calls; return its name."""
    environ = {**lab.environ(), **loose.loosen(lab)}
    line = ["--json", *(() if "--agent" in chosen else ("--agent", "general")), "--driver", lab.program, *chosen]
    if beginning == "new":
        return named(run("spawn", *line, "--name", "a1", "SCENARIO:steps", env=environ).json)
    if beginning == "kept":
        run("spawn", *line, "--name", "a1", "--keep", "SCENARIO:text", env=environ)
        wait_until(lambda: lab.open_questions("a1"), timeout_s=PATIENCE_S, what="the agent to be idle")
        lab.send("a1", "steps")
        return "a1"
    if beginning == "interrupted":
        run("spawn", *line, "--name", "a1", "SCENARIO:slow", env=environ)
        lab.arrived("slow")
        lab.send("a1", "steps", "--interrupt")
        return "a1"
    first = named(run("spawn", *line, "--name", "a0", "SCENARIO:text", env=environ).json)
    lab.completed(first)
    return named(run("resume", "--json", first, "--name", "a1", "SCENARIO:steps", env=environ).json)


def named(told: Any) -> str:
    return str(told["agentInstance"])


def asked_about(lab: Lab, agent: str, kind: str, target: Path) -> dict[str, Any]:
    """Wait until a person is asked about the very call that makes the file; what is asked before it is allowed."""

    def about() -> dict[str, Any] | None:
        for question in lab.open_questions(agent):
            if question.get("tool") and (kind == "skill" or target.name in json.dumps(question["arguments"])):
                return dict(question)
            if not question.get("idle"):
                run("interact", "respond", agent, "--id", question["id"], "allow", check=False)
        return None

    question = wait_until(about, timeout_s=PATIENCE_S, what=f"a question about {target}: {lab.account(agent)}")
    assert question is not None
    return question


def nothing_was_made(lab: Lab, agent: str) -> None:
    """Check that no call has made a file, whatever its name."""
    assert not list(outside(lab).iterdir()), lab.account(agent)


def settled(lab: Lab, agent: str, answer: str | None = None) -> None:
    """Wait until the model has got all its results: the worker has ended, or is idle, and then ends.

    A program may end its turn at a denial: its model gets no result then.

    Args:
        answer: What a person answers to each request meanwhile; by default nobody is asked anything.
    """
    steps = json.loads((lab.work / "steps.json").read_bytes())

    def is_settled() -> bool:
        if lab.task.events("agent.completed", "agent.failed", "agent.cancelled", of=agent):
            return True
        questions = lab.open_questions(agent)
        for question in questions:
            if answer is not None and question.get("tool"):
                run("interact", "respond", agent, "--id", question["id"], answer, check=False)
        is_idle = any(question.get("idle") for question in questions)
        is_done = any(len(request.results) >= len(steps) for request in lab.standin.requests) or any(
            row["phase"] == "end" for row in lab.activity(agent, "tool")
        )
        return is_idle and is_done

    wait_until(is_settled, timeout_s=PATIENCE_S, what=f"the end of {agent}")
    run("cancel", agent, check=False)


def was_tried(lab: Lab, agent: str, target: Path) -> bool:
    """Whether the program has dealt with the call that makes the file: its model got all results, or it is told."""
    steps = json.loads((lab.work / "steps.json").read_bytes())
    has_all = any(len(request.results) >= len(steps) for request in lab.standin.requests)
    return has_all or any(target.name in json.dumps(row) for row in lab.activity(agent, "tool"))

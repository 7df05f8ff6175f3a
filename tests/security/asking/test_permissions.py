"""At stake: what an agent asks a person for, no agent gives it; neither itself, nor one that started it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

import agentctl
from agentctl.adapters.taskdir import Root, WorkerDir
from agentctl.domain.question import question_in
from agentctl.drivers.dialogue import Ask
from agentctl.errors import Damaged, Refused
from agentctl.interfaces.mcp import forms
from agentctl.operations.install.agent_files import guidance
from agentctl.operations.talk.answerers import Answerer, check_answerer
from agentctl.operations.where.calling import Caller
from agentctl.operations.where.ownership import vouch_for_answer
from agentctl.tools.results import question_of
from agentctl.tools.scope import Scope
from agentctl.worker_programs.agent_host.host_questions import CHANGED, FORGED, ProgramQuestions
from tests import by_hand
from tests.agent_steps import activity, agent, agent_world, blocked, ends, plays
from tests.integration.test_identity import can_unshare, from_inside
from tests.life import set_config
from tests.mcp_steps import call, talk
from tests.steps import Task, held, spawn, spawn_batch, statuses
from tests.support import (
    PROGRAM,
    Completed,
    alike,
    by_turns,
    run,
    start_argv,
    wait_for_json,
    wait_for_text,
    wait_until,
    worker,
)

MEANS = {"allow": "allow", "allow_always": "allow_always", "deny": "deny"}
OPTIONS = [(name, name) for name in MEANS]


def answers(name: str, answer: str) -> list[str]:
    """Return the command line that answers the first question of a worker."""
    return [*PROGRAM, "interact", "respond", name, "--id", "q1", answer]


#: What an agent may have done with one that asks: start it, wait for its question, and then some commands.
TRIES = """
import json, os, subprocess
def run(argv):
    done = subprocess.run(argv, capture_output=True, text=True)
    return {{"code": done.returncode, "out": done.stdout, "err": done.stderr}}
for argv in {before!r}:
    done = run(argv)
    assert done["code"] == 0, done
said = [run(argv) for argv in {lines!r}]
with open({file!r} + ".new", "w") as file:
    json.dump(said, file)
os.rename({file!r} + ".new", {file!r})
"""


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    made = agent_world(tmp_path, monkeypatch, cap=4)
    set_config(made, maxConcurrentAgents=4, maxDepth=3, graceSeconds=1)
    return made


def until_blocked(instance: str) -> list[str]:
    return [*PROGRAM, "wait-any", instance, "--for", "blocked", "--timeout-seconds", "60"]


def until(line: str) -> list[str]:
    return ["sh", "-c", f"until {line} >/dev/null 2>&1; do sleep 0.1; done"]


def child(prompt: str = "permit touch x", name: str = "child") -> list[list[str]]:
    """Return how a worker starts an agent that asks, and waits for its question."""
    return [[*PROGRAM, "spawn", "--agent", "general", "--name", name, prompt], until_blocked(name)]


def script(folder: Path, lines: list[list[str]], before: list[list[str]]) -> str:
    return TRIES.format(lines=lines, before=before, file=str(folder / "said.json"))


def tried(
    folder: Path, *lines: list[str], options: tuple[str, ...] = (), before: list[list[str]] | None = None
) -> list[Completed]:
    """Let an agent start one that asks, and run commands while that waits; return how those ended."""
    text = script(folder, list(lines), child() if before is None else before) + 'me.answer("tried")\n'
    agent(plays(folder, text), *options, name="parent")
    return said_in(folder)


def said_in(folder: Path) -> list[Completed]:
    found = wait_for_json(folder / "said.json", timeout_s=40)
    return [Completed(argv=(), code=one["code"], out=one["out"], err=one["err"]) for one in found]


def answered(task: Task, instance: str = "child") -> list[tuple[str, str]]:
    """Return what was answered to a worker, and by whom, as the log tells."""
    rows = task.events("interaction.responded", of=instance)
    return [(row["payload"]["answer"], row["payload"]["by"]) for row in rows]


def last_word(instance: str) -> str:
    return str(ends(instance)["result"]["finalMessage"])


def refusal(done: Completed) -> str:
    """Check that an answer was refused as one to a permission, with what may be done; return why."""
    assert "a request for permission" in done.out + done.err, done
    assert "a person answers it" in done.out + done.err or "Traceback" in done.err, done
    return done.err or done.out


# -- an agent and its child --------------------------------------------------------------------------------------------


def bare() -> list[str]:
    """Return a command line without an environment, but for the person's folders."""
    told = [f"{name}={os.environ[name]}" for name in ("HOME", "XDG_RUNTIME_DIR", "AGENTCTL_ROOT", "PATH")]
    return ["env", "-i", *told]


def by_tool(answer: str, instance: str = "child") -> list[str]:
    return worker("calls_tools", "codex", json.dumps([["send_input", {"id": instance, "message": answer}, 20]]))


PYTHON = "import agentctl; agentctl.respond('allow', instance='child', question_id='q1')"
FORM = """
from agentctl.interfaces.mcp import forms
from agentctl.tools.scope import ScopeSource
scope = ScopeSource().scope()
agent = scope.find("child")
forms.answer_by_form(scope, agent, forms.question_of(agent), {"answer": "allow"})
from agentctl.operations.talk.interacting import answer_open_question
from agentctl.operations.talk.answerers import who_answers
answer_open_question(scope.task.root, task=agent.task, instance="child", question_id="q1", answer="allow",
        answerer=who_answers(by_form=True))
"""


@pytest.mark.slow
def test_an_agent_does_not_allow_its_child_what_it_asks(task: Task, tmp_path: Path) -> None:
    """By the command line under any name, from a session of its own, by a tool, by Python, by a form."""
    lines = [
        answers("child", "allow"),
        ["env", "-u", "AGENTCTL_INSTANCE", *answers("child", "allow")],
        [*bare(), *answers("child", "allow")],
        [*bare(), "setsid", "-f", *answers("child", "allow")],
        by_tool("allow"),
        [*bare(), *by_tool("allow")],
        [sys.executable, "-c", PYTHON],
        [sys.executable, "-c", FORM],
    ]
    for done in tried(tmp_path, *lines):
        assert "may deny it, or allow what its own rules allow" in refusal(done)
    assert answered(task) == []
    run("interact", "respond", "child", "--id", "q1", "allow")
    assert (last_word("child"), answered(task)) == ("allowed", [("allow", "user")])
    ends("parent")


@pytest.mark.parametrize("line", [answers("child", "deny"), *alike(by_tool("deny"))])
def test_it_may_deny_it(task: Task, tmp_path: Path, line: list[str]) -> None:
    (done,) = tried(tmp_path, line)
    assert done.code == 0, done
    assert (last_word("child"), answered(task)) == ("denied", [("deny", "parent")])
    ends("parent")


RULE = '[{"tool": "Bash", "pattern": "touch x", "answer": "allow"}]'


def test_it_may_allow_what_its_own_rules_allow(task: Task, tmp_path: Path) -> None:
    allowed = tried(tmp_path, by_tool("allow"), options=("--permissions", RULE))
    assert allowed[0].code == 0
    assert (last_word("child"), answered(task)) == ("allowed", [("allow", "parent")])
    ends("parent")


@pytest.mark.slow
def test_another_call_than_its_own_rules_allow_it_may_not_allow(task: Task, tmp_path: Path) -> None:
    (done,) = tried(tmp_path, by_tool("allow"), options=("--permissions", RULE), before=child("permit touch y"))
    refusal(done)
    run("interact", "respond", "child", "--id", "q1", "deny")
    ends("parent")


@pytest.mark.slow
def test_what_is_further_below_it_may_deny(task: Task, tmp_path: Path) -> None:
    inner = script(tmp_path / "inner", [], child(name="leaf")) + 'me.answer("started")\n'
    (tmp_path / "inner").mkdir()
    outer = [[*PROGRAM, "spawn", "--agent", "general", "--name", "child", plays(tmp_path / "inner", inner)]]
    # The leaf is not there yet when its grandparent begins to wait.
    outer += [until(f"{' '.join(PROGRAM)} show leaf"), until_blocked("leaf")]
    allow, deny = tried(tmp_path, answers("leaf", "allow"), answers("leaf", "deny"), before=outer)
    refusal(allow)
    assert deny.code == 0, deny
    assert (last_word("leaf"), answered(task, "leaf")) == ("denied", [("deny", "parent")])
    ends("parent")


@pytest.mark.slow
def test_a_command_that_has_started_it_may_only_deny(task: Task, tmp_path: Path) -> None:
    lines = [answers("child", "allow"), by_tool("allow"), answers("child", "deny")]
    spawn([sys.executable, "-c", script(tmp_path, lines, child())], name="parent")
    *allowed, denied = said_in(tmp_path)
    for done in allowed:
        refusal(done)
    assert denied.code == 0, denied
    assert (last_word("child"), answered(task)) == ("denied", [("deny", "parent")])
    run("wait", "parent")


ON_QUESTION = """
import asyncio
from agentctl import TaskExecutor, Task
async def main():
    async with TaskExecutor(Task.open(), on_question=answer) as executor:
        await executor.execute_parallel([{"objective": "permit touch x", "subagent_type": "general", "name": "child"}])
asked = []
def answer(question):
    asked.append(question)
    print(question.tool, flush=True)
    return "allow"
asyncio.run(main())
"""


def on_question(folder: Path) -> list[str]:
    file = folder / "answers.py"
    file.write_text(ON_QUESTION.replace("Task.open()", "None"), encoding="utf-8")
    return [sys.executable, str(file)]


@pytest.mark.slow
def test_a_program_answers_as_whoever_runs_it(task: Task, tmp_path: Path) -> None:
    """In a worker it is that worker, whose answer leaves the question to a person; else it is the person."""
    spawn(on_question(tmp_path), name="parent")
    wait_for_text(task.agent("parent") / "stdout.log", "Bash")
    blocked("child")
    run("interact", "respond", "child", "--id", "q1", "deny")
    run("wait", "parent", "child")
    assert answered(task) == [("deny", "user")]


@pytest.mark.slow
def test_a_persons_program_answers_for_them(task: Task) -> None:
    async def main() -> str | None:
        async with agentctl.TaskExecutor(on_question=lambda question: question.tool and "allow") as executor:
            return (await executor.execute_task("permit touch x", name="child")).result

    assert asyncio.run(main()) == "allowed"
    assert answered(task) == [("allow", "user")]
    agent("permit touch x")
    blocked()
    agentctl.respond("allow", instance="a", question_id="q1")
    assert last_word("a") == "allowed"


# -- others ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_nobody_answers_for_others_or_for_themselves(task: Task, tmp_path: Path) -> None:
    """Not even `deny`; and to say that one is the parent helps nobody whose shim says otherwise."""
    agent("permit touch x", name="other")
    blocked("other")
    parent = [f"AGENTCTL_{name}=" for name in ("INSTANCE", "AGENT_DIR")]
    lines = [
        answers("other", "allow"),
        answers("other", "deny"),
        [*bare(), *answers("other", "allow")],
        ["env", *parent, *answers("other", "allow")],
        by_tool("allow", "other"),
    ]
    *said, by_server = tried(tmp_path, *lines, before=[])
    for done in said:
        assert "is not above other" in refusal(done)
    assert "no worker 'other' below parent" in by_server.out
    open_question = f"{' '.join(PROGRAM)} interact list | grep -q self"
    text = 'me.ask("Bash", {"command": "touch x"}, "permission")\n' + script(
        tmp_path / "self", [answers("self", "allow"), [*bare(), *answers("self", "deny")]], [until(open_question)]
    )
    (tmp_path / "self").mkdir()
    agent(plays(tmp_path, text), name="self")
    for done in said_in(tmp_path / "self"):
        assert "is not above self" in refusal(done)
    for name in ("other", "self"):
        assert answered(task, name) == []
        run("interact", "respond", name, "--id", "q1", "allow")
        assert last_word(name) == "allowed"


@pytest.fixture
def deeper(task: Task, tmp_path: Path) -> Iterator[list[str]]:
    """What a process says to be a worker that is further down than all others here, and asks."""
    (tmp_path / "inner").mkdir()
    inner = script(tmp_path / "inner", [], child(name="leaf")) + 'me.answer("started")\n'
    rule = '[{"tool": "Bash", "pattern": "touch *", "answer": "allow"}]'
    agent(plays(tmp_path / "inner", inner), "--permissions", rule, name="middle")
    wait_for_json(tmp_path / "inner" / "said.json")
    yield ["env", "AGENTCTL_INSTANCE=leaf", f"AGENTCTL_AGENT_DIR={task.agent('leaf')}"]
    run("interact", "respond", "leaf", "--id", "q1", "deny")
    ends("middle")


@pytest.mark.slow
def test_who_says_to_be_another_answers_as_who_it_is_shown_to_be(task: Task, tmp_path: Path, deeper: list[str]) -> None:
    """The deepest counts where something is started; where one answers, that would be a way up."""
    above = ["env", "AGENTCTL_INSTANCE=middle", f"AGENTCTL_AGENT_DIR={task.agent('middle')}"]
    for done in tried(tmp_path, *([*one, *answers("leaf", "allow")] for one in (above, deeper)), before=[]):
        assert "parent is not above leaf" in refusal(done)


DENIES_RM = '[{"tool": "Bash", "pattern": "rm *", "answer": "deny"}]'


@pytest.mark.slow
def test_who_says_to_be_another_starts_what_it_may_itself(task: Task, tmp_path: Path, deeper: list[str]) -> None:
    """What it is denied it does not have done in the name of one that is denied less."""
    allowing = ["--permissions", '[{"tool": "Bash", "answer": "allow"}]']
    command, freer, asked = tried(
        tmp_path,
        [*deeper, *PROGRAM, "spawn", "--name", "made", "--", "rm", "x"],
        [*deeper, *PROGRAM, "spawn", "--agent", "general", "--name", "made", *allowing, "permit ls"],
        [*deeper, *PROGRAM, "spawn", "--agent", "general", "--name", "asked", "permit rm x"],
        options=("--permissions", DENIES_RM),
        before=[],
    )  # fmt: skip
    assert "the permissions of parent deny it the command rm" in command.err
    assert "parent may not allow its child what it is not allowed itself" in freer.err
    assert asked.code == 0, asked
    assert last_word("asked") == "denied"


@pytest.mark.skipif(not can_unshare(), reason="needs the right to make a pid namespace")
@pytest.mark.slow
def test_nothing_within_a_sandbox_answers(task: Task) -> None:
    """Not even `deny`: from in there nobody is shown to be anyone."""
    agent("permit touch x")
    blocked()
    for answer in ("allow", "deny"):
        refused = from_inside("interact", "respond", "a", "--id", "q1", answer)
        assert (refused.returncode, "it cannot be answered from within a sandbox" in refused.stderr) == (1, True)
    assert answered(task, "a") == []
    run("interact", "respond", "a", "--id", "q1", "deny")
    ends()


def test_what_teaches_a_parent_leaves_permissions_to_a_person() -> None:
    told = " ".join(guidance().split())
    assert "You can deny a request for permission (it names a tool). Only the user can allow it" in told
    assert "allow what the task needs" not in told


@pytest.mark.parametrize("variable", by_turns(by_hand.VARIABLES, 9))
@pytest.mark.slow
def test_in_a_shell_of_a_persons_agent_it_is_the_agent_that_answers(task: Task, variable: str) -> None:
    agent("permit touch x")
    blocked()
    for line in (
        answers("a", "allow"),
        [*by_hand.without(variable), *answers("a", "allow")],
    ):
        assert variable in refusal(by_process(line, {variable: "1"}))
    assert answered(task, "a") == []
    assert by_process([*by_hand.without(variable), *answers("a", "deny")]).code == 0
    assert (last_word("a"), answered(task, "a")) == ("denied", [("deny", "session")])


@pytest.mark.parametrize("name", by_turns(by_hand.NAMES, 9))
@pytest.mark.slow
def test_so_it_is_below_a_persons_agent_that_sets_no_variable(task: Task, tmp_path: Path, name: str) -> None:
    agent("permit touch x")
    blocked()
    program = by_hand.below(tmp_path, name)
    for line in (program, [*program, *by_hand.bare(*bare()[2:])]):
        refused = refusal(by_process([*line, *answers("a", "allow")]))
        assert f"is {name}" in refused or "/" in name, refused
    assert answered(task, "a") == []
    assert by_process(answers("a", "allow")).code == 0
    assert (last_word("a"), answered(task, "a")) == ("allowed", [("allow", "user")])


@pytest.mark.slow
def test_and_below_one_that_a_person_has_added(task: Task, tmp_path: Path) -> None:
    file = tmp_path / "home" / ".config" / "agentctl" / "acp.yaml"
    file.write_text("mine: {program: mine, marks: [IN_MINE], runsAs: ['@me/mine']}\n", encoding="utf-8")
    agent("permit touch x")
    blocked()
    for above in (by_hand.without("IN_MINE"), *(by_hand.below(tmp_path, name) for name in ("mine", "@me/mine"))):
        refusal(by_process([*above, *answers("a", "allow")]))
    file.write_text("mine: {program: mine, marks: IN_MINE}\n", encoding="utf-8")
    broken = by_process(answers("a", "allow"))
    assert (broken.code, "acp.yaml" in broken.err) == (2, True), "who may have answered is not known"
    file.unlink()
    assert by_process(answers("a", "allow")).code == 0
    assert answered(task, "a") == [("allow", "user")]


def by_process(argv: list[str], env: dict[str, str] | None = None) -> Completed:
    """Run a command line to its end."""
    process = start_argv(argv, env=env)
    out, err = process.communicate(timeout=40)
    return Completed(argv=tuple(argv), code=process.returncode, out=out, err=err)


@pytest.mark.slow
def test_a_persons_session_denies_by_a_tool_and_the_person_allows_by_a_form(task: Task) -> None:
    shown: list[str] = []

    async def fill(_context: Any, params: Any) -> types.ElicitResult:
        shown.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": "allow"})

    async def without(client: Any) -> None:
        for name, answer in (("a", "deny"), ("b", "allow")):
            await call(client, "spawn_agent", instruction="permit touch x", id=name)
            waited = await call(client, "wait", ids=[name])
            assert waited["results"][name]["question"]["tool"] == "Bash"
            told = await call(client, "send_input", id=name, message=answer)
            assert ("error" in told) == (answer == "allow"), told

    async def filled(client: Any) -> None:
        await call(client, "wait", ids=["b"])
        await asyncio.to_thread(task.ended, "b")

    talk(without)
    talk(filled, elicitation_callback=fill)
    assert ["touch x" in one for one in shown] == [True]
    assert (answered(task, "a"), answered(task, "b")) == ([("deny", "session")], [("allow", "user")])
    assert (last_word("a"), last_word("b")) == ("denied", "allowed")


@pytest.mark.slow
def test_what_asks_for_no_permission_anybody_answers(task: Task, tmp_path: Path) -> None:
    agent("question", name="other")
    blocked("other")
    (done,) = tried(tmp_path, answers("other", "red"), before=[])
    assert done.code == 0, done
    assert (last_word("other"), answered(task, "other")) == ("red", [("red", "parent")])
    agent("question", name="third")
    blocked("third")
    run("interact", "respond", "third", "--id", "q1", "blue", env={"CLAUDECODE": "1"})
    assert last_word("third") == "blue"


# -- what lies on disk -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "forged",
    [
        {"id": "q1", "answer": "allow", "by": "user", "at": "2026-01-01T00:00:00.000Z"},
        *alike({"id": "q1", "answer": None, "by": "agentctl", "expired": True}),
    ],
)
@pytest.mark.slow
def test_an_answer_beside_agentctl_is_set_aside_and_told(task: Task, forged: dict[str, Any]) -> None:
    agent("permit touch x")
    blocked()
    folder = task.agent("a") / "interactions"
    for _ in range(2):
        (folder / "draft").write_text(json.dumps(forged), encoding="utf-8")
        (folder / "draft").rename(folder / "q1.answer.json")
        wait_until(lambda: not (folder / "q1.answer.json").exists(), what="the answer to be set aside")
    assert statuses() == {"a": "blocked"}
    assert [one["id"] for one in run("interact", "list", "--json").json] == ["q1"]
    run("interact", "respond", "a", "--id", "q1", "deny")
    assert last_word("a") == "denied"
    assert len([row for row in activity(task) if "did not come through agentctl" in str(row.get("text"))]) == 1


@pytest.fixture
def asking(task: Task, tmp_path: Path) -> Iterator[tuple[WorkerDir, ProgramQuestions]]:
    """A worker, and in the place of its driver this test: nobody looks at what it does between two steps."""
    spawn_batch([held(tmp_path / "gate", "a")])
    folder = Root(str(task.path.parent.parent)).task(task.path.name).worker("a")
    made = ProgramQuestions(folder, str(tmp_path / "home" / ".config" / "agentctl" / "own"))
    made.put(Ask("key", "Allow Bash?", OPTIONS, tool="Bash", arguments={"command": "rm x"}, means=MEANS))
    yield folder, made
    made.close_all("the test is over")
    (tmp_path / "gate").touch()
    run("wait", "a")


def rewritten(folder: WorkerDir, **changes: Any) -> None:
    """Change a question as its worker could."""
    body = {**json.loads(folder.question("q1").read_bytes()), **changes}
    told = {key: value for key, value in body.items() if value is not None}
    Path(folder.question("q1")).write_text(json.dumps(told), encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "answer", "env"),
    by_turns(
        [
            ({"means": {**MEANS, "allow": "deny"}}, "allow", {"CLAUDECODE": "1"}),
            ({"tool": None, "means": None}, "allow", {"CLAUDECODE": "1"}),
            ({"options": [{"id": "allow", "label": "deny"}]}, "deny", {}),
            ({"arguments": {"command": "ls"}}, "allow", {}),
            ({"question": "What colour?", "kind": "input", "options": []}, "allow", {}),
            ({"askedAt": "2026-01-01T00:00:00.000Z"}, "allow", {}),
        ],
        2,
    ),
)
@pytest.mark.slow
def test_an_answer_to_something_else_is_none(
    asking: tuple[WorkerDir, ProgramQuestions], changes: dict[str, Any], answer: str, env: dict[str, str]
) -> None:
    """Whatever a worker makes of its question on disk: an answer is one to what its driver has asked."""
    folder, questions = asking
    asked = folder.question("q1").read_bytes()
    rewritten(folder, **changes)
    run("interact", "respond", "a", "--id", "q1", answer, env=env)
    assert list(questions.answered()) == []
    assert set(questions.take_tampered()) == {(CHANGED, "q1"), (FORGED, "q1")}
    assert folder.question("q1").read_bytes() == asked
    refusal(run("interact", "respond", "a", "--id", "q1", "allow", env={"CLAUDECODE": "1"}, check=False))
    run("interact", "respond", "a", "--id", "q1", "deny")
    assert [found for _, found, _ in questions.answered()] == ["deny"]
    assert questions.take_tampered() == []


def test_a_form_answers_what_it_has_shown(asking: tuple[WorkerDir, ProgramQuestions], task: Task) -> None:
    folder, _ = asking
    rewritten(folder, arguments={"command": "ls"})
    shown = question_of(folder)
    assert shown is not None
    names = [forms.question_key(folder, shown)]
    rewritten(folder, arguments={"command": "rm x"})
    assert not forms.answer_by_form(Scope(folder.task), folder, shown, {"answer": "allow"})
    assert answered(task, "a") == []
    now = question_of(folder)
    assert now is not None
    assert forms.question_key(folder, now) not in names
    assert forms.answer_by_form(Scope(folder.task), folder, now, {"answer": "allow"})
    assert answered(task, "a") == [("allow", "user")]


def test_a_question_that_is_no_file_any_more_is_put_again(asking: tuple[WorkerDir, ProgramQuestions]) -> None:
    folder, questions = asking
    asked = folder.question("q1").read_bytes()
    os.unlink(folder.question("q1"))
    os.mkdir(folder.question("q1"))
    assert list(questions.answered()) == []
    assert folder.question("q1").read_bytes() == asked


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["folder", "link", "FIFO", "text"])
def test_what_is_no_answer_does_not_stand_in_the_way_of_one(
    asking: tuple[WorkerDir, ProgramQuestions], kind: str
) -> None:
    folder, questions = asking
    file = folder.answer("q1")
    match kind:
        case "folder":
            os.mkdir(file)
        case "link":
            os.symlink("nowhere", file)
        case "FIFO":
            os.mkfifo(file)
        case _:
            Path(file).write_text("[", encoding="utf-8")
    done = run("interact", "respond", "a", "--id", "q1", "allow", check=False)
    assert (done.code, done.out) == (1, ""), "nobody is told that it was answered"
    assert "bug" not in done.err
    assert list(questions.answered()) == []
    assert questions.take_tampered() == [(FORGED, "q1")]
    run("interact", "respond", "a", "--id", "q1", "allow")
    assert [found for _, found, _ in questions.answered()] == ["allow"]


def test_an_answer_is_taken_once(asking: tuple[WorkerDir, ProgramQuestions], tmp_path: Path) -> None:
    """What was allowed once is kept, and put in the place of the answer to the same request again."""
    folder, questions = asking
    notes = tmp_path / "home" / ".config" / "agentctl" / "own"
    before = set(os.listdir(notes))
    run("interact", "respond", "a", "--id", "q1", "allow")
    assert len(set(os.listdir(notes)) - before) == 1
    kept = folder.answer("q1").read_bytes()
    assert [answer for _, answer, _ in questions.answered()] == ["allow"]
    assert set(os.listdir(notes)) == before
    for file in (folder.answer("q1"), folder.question("q1")):
        os.unlink(file)
    questions.put(Ask("again", "Allow Bash?", OPTIONS, tool="Bash", arguments={"command": "rm x"}, means=MEANS))
    assert folder.question_ids() == ["q2"], "an id is given once"
    Path(folder.answer("q2")).write_bytes(kept.replace(b'"q1"', b'"q2"'))
    assert list(questions.answered()) == []


def test_nobody_says_where_answers_are_noted(asking: tuple[WorkerDir, ProgramQuestions], tmp_path: Path) -> None:
    """A worker writes another folder into its own order, and a note in it."""
    folder, questions = asking
    told(folder, order={"marks": str(tmp_path / "mine")})
    forged = {"id": "q1", "answer": "allow", "by": "user", "at": "2026-01-01T00:00:00.000Z"}
    vouch_for_answer(folder, json.loads(folder.question("q1").read_bytes()), forged)
    assert list((tmp_path / "mine").iterdir()) != []
    Path(folder.answer("q1")).write_text(json.dumps(forged), encoding="utf-8")
    assert list(questions.answered()) == []


# -- what the rules of a parent allow its child ------------------------------------------------------------------------

CALL: dict[str, Any] = {
    "kind": "select", "question": "Allow Bash?", "options": [{"id": name, "label": name} for name in MEANS],
    "tool": "Bash", "arguments": {"command": "make"}, "means": MEANS,
}  # fmt: skip
ALLOWS = {"permissions": [{"tool": "Bash", "pattern": "make", "answer": "allow"}]}
DENIES = [[{"tool": "Bash", "pattern": "mak*", "answer": "deny"}]]


@pytest.fixture
def family(task: Task) -> tuple[WorkerDir, WorkerDir]:
    """A worker that has started another, by their files."""
    parent, below = (Root(str(task.path.parent.parent)).task(task.path.name).worker(name) for name in ("p", "c"))
    for one, told in ((parent, {"order": ALLOWS}), (below, {"parent": "p", "order": {}})):
        one.path.mkdir(parents=True)
        Path(one.spec).write_text(json.dumps({"cwd": os.getcwd(), **told}), encoding="utf-8")
    parent.children.mkdir()
    Path(parent.children / "t1.c").touch()
    return parent, below


def told(worker: WorkerDir, **changes: Any) -> None:
    spec = json.loads(worker.spec.read_bytes())
    Path(worker.spec).write_text(json.dumps({**spec, **changes}), encoding="utf-8")


def may(family: tuple[WorkerDir, WorkerDir], answer: str = "allow", **question: Any) -> bool:
    parent, below = family
    who = Answerer(Caller(parent.task, parent.instance), is_agent=True)
    try:
        asked = question_in("q1", {**CALL, **question})
        assert asked is not None
        check_answerer(below, asked, answer, who)
    except Refused:
        return False
    return True


def test_rules_allow_that_very_call_once(family: tuple[WorkerDir, WorkerDir]) -> None:
    assert may(family)
    assert not may(family, "allow_always")
    assert not may(family, arguments={"command": "make all"})
    assert not may(family, tool="Write")
    assert not may(family, isCut=True), "who knows what it is"
    assert not may(family, means={"allow": "perhaps"})
    assert may(family, "deny", isCut=True)


@pytest.mark.parametrize(
    "order",
    [
        {"readOnly": True},
        {"deniedAbove": DENIES},
        {"tools": ["Read", "mcp__agentctl__*"]},
        {"permissions": []},
        {"permissions": [*DENIES[0], *ALLOWS["permissions"]]},
    ],
)
def test_rules_do_not_allow_what_the_parent_cannot_do(
    family: tuple[WorkerDir, WorkerDir], order: dict[str, Any]
) -> None:
    told(family[0], order={**ALLOWS, **order})
    assert not may(family)
    assert may(family, "deny")


def test_rules_are_about_the_folder_of_the_parent(family: tuple[WorkerDir, WorkerDir], tmp_path: Path) -> None:
    told(family[1], cwd=str(tmp_path))
    assert not may(family)


@pytest.mark.parametrize(
    "order", [5, {"tools": 5}, {"tools": "Bash"}, {"tools": [5]}, {"permissions": [5]}, {"deniedAbove": 5}]
)
def test_an_order_that_no_spawn_wrote_allows_nothing(family: tuple[WorkerDir, WorkerDir], order: Any) -> None:
    told(family[0], order={**ALLOWS, **order} if isinstance(order, dict) else order)
    with pytest.raises(Damaged, match=r"spec\.json is damaged: `order"):
        may(family)
    assert may(family, "deny")


def test_rules_allow_nothing_that_a_link_leads_to(family: tuple[WorkerDir, WorkerDir], tmp_path: Path) -> None:
    Path("src").mkdir()
    Path("src/link").symlink_to(tmp_path)
    read = {"tool": "Read", "pattern": "src/*", "answer": "allow"}
    told(family[0], order={"permissions": [read]})
    assert may(family, tool="Read", arguments={"path": "src/new"})
    assert not may(family, tool="Read", arguments={"path": "src/link/key"})
    denied = [[{"tool": "Read", "pattern": f"{tmp_path}/*", "answer": "deny"}]]
    told(family[0], order={"permissions": [{**read, "pattern": "*"}], "deniedAbove": denied})
    assert not may(family, tool="Read", arguments={"path": "src/link/key"})

"""At stake: whatever a model calls, its file tools stay where they were allowed to go."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.lab import Lab, option
from tests.agents.scenarios import Call, Reply
from tests.agents.standin import StandIn
from tests.snapshots import files_with, snapshot
from tests.steps import new_task
from tests.support import alike, run, wait_until, worker

pytestmark = pytest.mark.drivers

SECRET = "the secret outside"
#: renameat2(2): two names change places in one step.
_HERE, _EXCHANGE = -100, 2


@pytest.fixture
def lab(root: Path, tmp_path: Path) -> Iterator[Lab]:
    """A task, a stand-in for the models, and a folder outside the agent's own with a secret in it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(f"{SECRET}\n")
    with StandIn() as standin:
        yield Lab("llm", tmp_path, new_task(cap=5, grace=1), standin)


def calls(lab: Lab, *calls: tuple[str, dict[str, Any]]) -> None:
    """Have the model make these calls in its first answer."""
    lab.standin.first = [Reply(calls=tuple(Call(*call) for call in calls))]


def results(lab: Lab, agent: str) -> list[str]:
    """Wait for the end; return what the tools have answered."""
    lab.completed(agent)
    return lab.standin.requests[-1].results


def outside(lab: Lab) -> Path:
    return lab.folder / "outside"


def test_reading_outside_is_asked_about_by_every_way(lab: Lab) -> None:
    Path("link").symlink_to(outside(lab))
    Path("file").symlink_to(outside(lab) / "secret.txt")
    ways = ["../outside/secret.txt", "link/secret.txt", "file", str(outside(lab) / "secret.txt"), "/proc/self/environ"]
    calls(
        lab,
        *[("read_file", {"path": path}) for path in ways],
        ("search", {"pattern": "secret", "path": "link"}),
        ("search", {"pattern": "secret", "path": "file"}),
        ("find", {"pattern": "*", "path": ".."}),
    )
    told = results(lab, lab.spawn("text", "--permissions", "deny"))
    assert len(told) == 8
    assert all("A rule denies this" in result for result in told), told


def test_links_are_not_followed_by_searches_in_the_folder(lab: Lab) -> None:
    Path("link").symlink_to(outside(lab))
    Path("file").symlink_to(outside(lab) / "secret.txt")
    Path("own.txt").write_text("no secret\n")
    calls(lab, ("search", {"pattern": "secret"}), ("find", {"pattern": "**/*.txt"}))
    assert results(lab, lab.spawn("text", "--permissions", "deny")) == ["own.txt:1: no secret", "own.txt"]


@pytest.mark.parametrize("permissions", ["ask", "allow"])
def test_one_that_may_only_read_writes_nothing(lab: Lab, permissions: str) -> None:
    Path("there.txt").write_text("there\n")
    before = snapshot(lab.work)
    calls(
        lab,
        ("write_file", {"path": "new.txt", "content": "x"}),
        ("Write", {"file_path": "new.txt", "content": "x"}),
        ("edit_file", {"path": "there.txt", "old_string": "there", "new_string": "x"}),
        ("shell", {"command": "touch new.txt"}),
        ("Bash", {"command": "touch new.txt"}),
        ("spawn_agent", {"instruction": "write it"}),
    )
    told = results(lab, lab.spawn("text", "--permissions", permissions, agent="explore"))
    assert len(told) == 6
    assert all("there is no tool" in result for result in told)
    assert snapshot(lab.work) == before
    assert not lab.task.events("interaction.requested")


def test_a_tool_that_the_definition_does_not_list_is_not_there(lab: Lab) -> None:
    folder = lab.task.path.parent.parent / "agents"
    folder.mkdir()
    text = "---\nname: reader\ndescription: Reads.\ntools: Read, Grep\ndisallowedTools: Grep\n---\nYou read.\n"
    (folder / "reader.md").write_text(text, encoding="utf-8")
    calls(lab, ("shell", {"command": "touch new.txt"}), ("search", {"pattern": "x"}))
    shell, search = results(lab, lab.spawn("text", "--permissions", "allow", agent="reader"))
    assert set(lab.standin.requests[-1].tools) == {"read_file", "search"}
    assert "there is no tool" in shell
    assert "A rule denies this" in search


def test_a_folder_that_is_swapped_for_a_link_before_the_answer_leads_nowhere(lab: Lab) -> None:
    Path("sub").mkdir()
    calls(lab, ("write_file", {"path": "sub/secret.txt", "content": "overwritten"}))
    agent = lab.spawn("text")
    question = lab.question(agent)
    Path("sub").rename("was-sub")
    Path("sub").symlink_to(outside(lab))
    lab.respond(agent, option(question, "allow"))
    (told,) = results(lab, agent)
    assert "leads elsewhere now" in told
    assert (outside(lab) / "secret.txt").read_text() == f"{SECRET}\n"


def test_a_folder_that_is_swapped_all_the_time_never_lets_a_write_out(lab: Lab) -> None:
    Path("sub").mkdir()
    Path("other").symlink_to(outside(lab))
    calls(lab, *[("write_file", {"path": "sub/new.txt", "content": "x"})] * 40)
    stop = threading.Event()

    exchange = ctypes.CDLL(None).renameat2

    def swap() -> None:
        while not stop.is_set():
            exchange(_HERE, b"sub", _HERE, b"other", _EXCHANGE)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        rules = [{"tool": "Write", "pattern": "sub/*", "answer": "allow"}, {"answer": "deny"}]
        told = results(lab, lab.spawn("text", "--permissions", json.dumps(rules)))
    finally:
        stop.set()
        swapper.join()
    assert len(told) == 40
    (kept,) = files_with(outside(lab), "")
    assert kept.read_text() == f"{SECRET}\n"


def test_the_files_of_agentctl_are_closed_whatever_is_allowed(lab: Lab) -> None:
    task = lab.task.path
    config = Path(os.environ["HOME"]) / ".config" / "agentctl"
    Path(".agentctl").mkdir()
    Path("link").symlink_to(task)
    targets = [
        str(task / "task.yaml"), str(config / "trust.json"), ".agentctl/config.yaml", "link/new.txt", "./x/.agentctl/y",
        str(lab.folder / ".agentctl" / "tasks" / "t1" / "agents" / "a1" / "conversation.jsonl"),
    ]  # fmt: skip
    calls(lab, *[("write_file", {"path": path, "content": "x"}) for path in targets])
    told = results(lab, lab.spawn("text", "--permissions", "allow"))
    assert all("is closed to this agent" in result for result in told), told
    assert not (task / "new.txt").exists()


def test_what_waits_for_other_workers_cannot_be_read(lab: Lab) -> None:
    hidden = Path(os.environ["XDG_RUNTIME_DIR"]) / "agentctl"
    calls(lab, ("read_file", {"path": f"{hidden}/x"}), ("search", {"pattern": ".", "path": str(hidden)}))
    told = results(lab, lab.spawn("text", "--permissions", "allow"))
    assert all("is closed to this agent" in result for result in told), told


def test_odd_files_are_refused_and_nothing_hangs(lab: Lab) -> None:
    os.mkfifo("fifo")
    Path("binary").write_bytes(b"a\0b")
    with Path("huge").open("wb") as huge:
        huge.truncate(1 << 40)
    Path("device").symlink_to("/dev/zero")
    calls(
        lab,
        *[("read_file", {"path": path}) for path in ("fifo", "binary", "huge", "device", ".", "no/such")],
        ("write_file", {"path": "fifo", "content": "x"}),
        ("edit_file", {"path": "huge", "old_string": "a", "new_string": "b"}),
        ("search", {"pattern": "a"}),
    )
    told = results(lab, lab.spawn("text", "--permissions", "allow"))
    words = ["no plain file", "binary file", "too many to read", "no plain file", "a folder", "no such file"]
    for word, result in zip([*words, "not a plain file", "too many"], told, strict=False):
        assert word in result
    assert told[-1] == "Nothing was found."


def test_a_pattern_that_takes_for_ever_is_stopped(lab: Lab) -> None:
    Path("long.txt").write_text("a" * 60 + "!\n")
    calls(lab, ("search", {"pattern": "(a+)+$"}))
    agent = lab.spawn("text")
    wait_until(lambda: lab.runs("search_process.py"), what="the search to run")
    run("send", agent, "--interrupt", "SCENARIO:recall")
    lab.completed(agent)
    assert not lab.runs("search_process.py")


def test_a_question_shows_where_a_link_leads(lab: Lab) -> None:
    Path("link").symlink_to(outside(lab))
    calls(lab, ("write_file", {"path": "link/new.txt", "content": "x"}))
    agent = lab.spawn("text")
    question = lab.question(agent)
    assert question["arguments"]["path"] == str(outside(lab) / "new.txt")
    lab.respond(agent, option(question, "allow"))
    results(lab, agent)
    assert (outside(lab) / "new.txt").read_text() == "x"


def test_a_question_shows_all_of_the_call_that_is_made(lab: Lab) -> None:
    given = {"command": "echo hi", "directory": "/", "hidden": "and rm -rf", "description": "Says hi"}
    calls(lab, ("shell", given))
    agent = lab.spawn("text")
    question = lab.question(agent)
    assert question["arguments"] == {"command": "echo hi", "directory": "/", "description": "Says hi"}
    lab.respond(agent, option(question, "allow"))
    assert results(lab, agent) == ["hi\n"]


def test_ids_of_calls_that_look_like_paths_are_only_ids(lab: Lab) -> None:
    calls(lab, ("shell", {"command": "seq 20000"}))
    agent = lab.spawn("text", "--permissions", "allow")
    results(lab, agent)
    names = [path.name for path in (lab.task.agent(agent) / "outputs").iterdir()]
    assert [name.endswith("-1.txt") for name in names] == [True]


def test_a_damaged_conversation_is_never_an_invalid_request(lab: Lab) -> None:
    calls(lab, ("shell", {"command": "echo hi"}))
    agent = lab.spawn("text", "--permissions", "allow")
    results(lab, agent)
    file = lab.task.agent(agent) / "conversation.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["type"] != "result"]
    file.write_bytes(b"".join([*kept, b'{"type": "result", "call": "none"}\n', b"\xff\xfe\n", b'{"type": "assis']))
    assert lab.completed(lab.resume(agent, "recall")).startswith("I recall 2")
    assert sum(turn.kind == "call" for turn in lab.standin.requests[-1].turns) == 1


@pytest.mark.parametrize("rule", [{"pattern": "secrets/*"}, {"tool": "*", "pattern": "*secrets*"}])
def test_a_rule_for_every_tool_holds_for_reading_as_well(lab: Lab, rule: dict[str, str]) -> None:
    Path("secrets").mkdir()
    Path("secrets/a.txt").write_text(f"{SECRET}\n")
    calls(lab, ("read_file", {"path": "secrets/a.txt"}))
    (told,) = results(lab, lab.spawn("text", "--permissions", json.dumps([{**rule, "answer": "deny"}])))
    assert "A rule denies this" in told


EVERYWHERE = {"tool": "*", "pattern": "*secrets*"}


@pytest.mark.parametrize("answer", ["deny", *alike("ask")])
@pytest.mark.parametrize(
    "rule",
    [
        EVERYWHERE,
        {"tool": "Grep", "pattern": "secrets/*"},
        {"tool": "Read", "pattern": "secrets/*"},
        *alike({"tool": "read_file", "pattern": "*/secrets/*.env"}, {"tool": "search", "pattern": "secrets/db.env"}),
    ],
)
def test_what_a_rule_denies_comes_out_by_no_search(lab: Lab, rule: dict[str, str], answer: str) -> None:
    """Neither its content nor, if no tool may read it, its name; also where the search is of a folder above it."""
    Path("secrets/deep").mkdir(parents=True)
    for place in ("secrets/db.env", "secrets/deep/db.env", "open.txt"):
        Path(place).write_text("password=hunter2\n")
    ways = [("search", {"pattern": "password"}), ("search", {"pattern": "password", "glob": "*.env"}),
            ("search", {"pattern": "password", "path": str(Path.cwd())}), ("find", {"pattern": "**"})]  # fmt: skip
    calls(lab, *ways)
    told = results(lab, lab.spawn("text", "--permissions", json.dumps([{**rule, "answer": answer}])))
    if rule["pattern"] == "secrets/db.env":  # The other one may be read.
        told = [one.replace("secrets/deep/db.env:1: password=hunter2", "") for one in told]
    assert [("secrets/" in one or "secrets\n" in one) for one in told[:3]] == [False] * 3, told
    assert ["open.txt:1: password=hunter2" in one for one in told[:3]] == [True, False, True], told
    assert "open.txt" in told[3]
    assert ("secrets/db.env" in told[3]) == (rule["tool"] in {"Grep", "search"}), "that one speaks of its content"
    assert all("left out" in one for one in told[:3])


@pytest.mark.parametrize("path", ["secrets", *alike("./secrets/", "secrets/deep/..")])
@pytest.mark.parametrize(("tool", "name"), [("search", "Grep"), ("find", "Glob"), *alike(("find", "Read"))])
def test_a_rule_for_what_lies_in_a_folder_holds_for_a_search_of_it(lab: Lab, tool: str, name: str, path: str) -> None:
    Path("secrets/deep").mkdir(parents=True)
    Path("secrets/db.env").write_text("password=hunter2\n")
    rules = [{"tool": name, "pattern": "secrets/*", "answer": "deny"}]
    calls(lab, (tool, {"pattern": "*" if tool == "find" else "password", "path": path}))
    (told,) = results(lab, lab.spawn("text", "--permissions", json.dumps(rules)))
    assert "A rule denies this" in told
    assert "hunter2" not in told


def test_who_allows_a_search_of_a_folder_allows_all_of_it_but_what_is_denied(lab: Lab) -> None:
    Path("secrets").mkdir()
    for name in ("secrets/a.env", "secrets/b.key"):
        Path(name).write_text("password=hunter2\n")
    rules = [{"pattern": "*.key", "answer": "deny"}, {"pattern": "secrets/*", "answer": "ask"}]
    calls(lab, ("search", {"pattern": "password", "path": "secrets"}))
    agent = lab.spawn("text", "--permissions", json.dumps(rules))
    lab.respond(agent, option(lab.question(agent), "allow"))
    (told,) = results(lab, agent)
    assert told.splitlines()[0] == "secrets/a.env:1: password=hunter2"
    assert "b.key" not in told


def test_what_an_agent_above_is_denied_comes_out_by_no_search_below_it(lab: Lab) -> None:
    Path("secrets").mkdir()
    Path("secrets/db.env").write_text("password=hunter2\n")
    start = ("spawn_agent", {"message": "SCENARIO:calls=child.json", "name": "child"})
    Path("child.json").write_text(json.dumps([["search", {"pattern": "password"}], ["find", {"pattern": "*.env"}]]))
    calls(lab, start, ("wait", {"ids": ["child"], "timeout_ms": 60_000}))
    lab.completed(lab.spawn("text", "--permissions", json.dumps([{**EVERYWHERE, "answer": "deny"}])))
    asked = [one for one in lab.standin.requests if one.scenario[0] == "calls" and one.results]
    assert len(asked[-1].results) == 2
    assert not any("db.env" in one for one in asked[-1].results), asked[-1].results


def test_a_rule_for_the_tools_that_start_agents_holds(lab: Lab) -> None:
    start = ("spawn_agent", {"message": "SCENARIO:text"})
    rules = [{"tool": "mcp__agentctl__spawn_agent", "answer": "deny"}]
    calls(lab, start)
    (told,) = results(lab, lab.spawn("text", "--permissions", json.dumps(rules)))
    assert "A rule denies this" in told
    calls(lab, start)
    agent = lab.spawn("text", "--permissions", json.dumps([{**rules[0], "answer": "ask"}]), name="a2")
    question = lab.question(agent)
    assert (question["tool"], question["arguments"]) == (rules[0]["tool"], start[1])
    lab.respond(agent, option(question, "deny"))
    (told,) = results(lab, agent)
    assert "denied" in told
    assert {row["agentInstance"] for row in run("list", "--json").json} == {"a1", "a2"}


def test_who_calls_a_tool_that_was_not_offered_is_refused(lab: Lab) -> None:
    folder = lab.task.path.parent.parent / "agents"
    folder.mkdir()
    text = "---\nname: lister\ndescription: Lists.\ntools: Bash, mcp__agentctl__list_agents\n---\nYou list.\n"
    (folder / "lister.md").write_text(text, encoding="utf-8")
    made = json.dumps([["spawn_agent", {"instruction": "SCENARIO:text"}, 30], ["list_agents", {}, 30]])
    calls(lab, ("shell", {"command": shlex.join([*worker("calls_tools", "codex", made)])}))
    (told,) = results(lab, lab.spawn("text", "--permissions", "allow", agent="lister"))
    offered, started, listed = (json.loads(line) for line in told.splitlines())
    assert (list(offered), listed) == (["list_agents"], [])
    assert started["error"] == "this agent may not use spawn_agent"
    assert [row["agentInstance"] for row in run("list", "--json").json] == ["a1"]


@pytest.mark.parametrize("named", ["mcp__agentctl__list_agents", "mcp__agentctl__l*"])
def test_who_has_one_of_agentctls_tools_has_no_other_one(lab: Lab, named: str) -> None:
    folder = lab.task.path.parent.parent / "agents"
    folder.mkdir()
    text = f"---\nname: lister\ndescription: Lists.\ntools: Read, {named}\n---\nYou list.\n"
    (folder / "lister.md").write_text(text, encoding="utf-8")
    calls(lab, ("spawn_agent", {"message": "SCENARIO:text"}), ("list_agents", {}))
    started, listed = results(lab, lab.spawn("text", agent="lister"))
    assert set(lab.standin.requests[-1].tools) == {"read_file", "list_agents"}
    assert "there is no tool" in started
    assert "there is no tool" not in listed
    assert [row["agentInstance"] for row in run("list", "--json").json] == ["a1"]

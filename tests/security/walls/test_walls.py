"""What a worker may write cannot decide more than it may say: its outbox, its questions, the walls around it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentctl.drivers.claude.start import claude_argv
from agentctl.drivers.codex.dialogue import CodexDialogue
from agentctl.drivers.codex.opening import codex_greeting, thread_params
from agentctl.drivers.codex.walls import profile
from agentctl.drivers.dialogue import StopProgram
from agentctl.drivers.order import Order
from tests.agent_steps import activity, agent, agent_world, blocked, ends, plays
from tests.placed import ask_engine, launch_of, there
from tests.steps import Task
from tests.support import run, wait_until

#: Puts words into the outbox of the worker in which it runs.
SAYING = """
import json, os, pathlib, time
outbox = pathlib.Path(os.environ["AGENTCTL_AGENT_DIR"]) / "outbox"
def put(name, word):
    draft = outbox / f".{name}.tmp"
    draft.write_text(word if isinstance(word, str) else json.dumps(word))
    draft.rename(outbox / f"{name}.json")
def taken(name):
    until = time.monotonic() + 20
    while (outbox / f"{name}.json").exists() and time.monotonic() < until:
        time.sleep(0.01)
"""
ASK: dict[str, Any] = {
    "verb": "ask",
    "id": "q1",
    "kind": "select",
    "question": "Go on?",
    "default": None,
    "deadlineSeconds": None,
}
ASK |= {"options": [{"id": "allow", "label": "yes"}, {"id": "deny", "label": "no"}]}


@pytest.fixture
def task(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch)


def says(folder: Path, script: str) -> str:
    """Return the prompt for an agent program that does what a script says, and answers."""
    return plays(folder, f"{SAYING}\n{script}\nme.answer('done')")


def notes(task: Task) -> list[str]:
    return [row["text"] for row in activity(task) if row["type"] == "note"]


def test_words_in_an_outbox_are_those_of_their_worker(task: Task, tmp_path: Path) -> None:
    words = [
        {"verb": "progress", "percent": 40, "text": "reading", "agentInstance": "other"},
        {"verb": "message", "text": "hello"},
        {"verb": "result", "summary": "found", "artifact": {"path": "/x", "size": 1, "sha256": "0" * 64}},
    ]
    agent(says(tmp_path, f"for n, word in enumerate({words!r}): put(n, word)"))
    found = ends()
    assert (found["status"], found["result"]["summary"]) == ("completed", "found")
    assert found["result"]["artifacts"] == [{"path": "/x", "size": 1, "sha256": "0" * 64}]
    progress = json.loads((task.agent("a") / "progress.json").read_bytes())
    assert (progress["percent"], progress["text"]) == (40, "reading")
    assert "hello" in [row.get("text") for row in activity(task)]
    assert [event["by"] for event in task.events("result.declared")] == ["a"]
    assert list((task.agent("a") / "outbox").iterdir()) == []


HOSTILE = """
victim = pathlib.Path({victim!r})
(outbox / "link.json").symlink_to(victim)
(outbox / "folder-link.json").symlink_to(victim.parent)
(outbox / "dangling.json").symlink_to(victim.parent / "missing")
os.mkfifo(outbox / "fifo.json")
(outbox / "folder.json").mkdir()
(outbox / ".full").mkdir(); (outbox / ".full" / "x").touch(); (outbox / ".full").rename(outbox / "full.json")
with open(outbox / "huge.json", "wb") as file: file.truncate(2 << 30)
put("long", json.dumps(dict(verb="message", text="x" * (1 << 17))))
put("deep", "[" * 60000)
put("wide", json.dumps(dict(verb="progress", percent=1, text="x", more=[0] * 20000)))
(outbox / ".none").touch(); os.link(outbox / ".none", outbox / "other-name.json")  # The reader takes no such name.
(outbox / ".none").rename(outbox / "none.json")
for n, word in enumerate([
    [], 1, "x", dict(), dict(verb="respond", id="q1", answer="allow"), dict(verb="spawn", argv=["touch", "x"]),
    dict(verb="cancel"), dict(verb=["ask"]), dict(verb="progress", percent="1"), dict(verb="progress", percent=1e999),
    dict(verb="progress", percent=True), dict(verb="message", text=7), dict(verb="message", text=" "),
    dict(verb="result", summary=[]), dict(verb="result", artifact=dict(path="x", size=1, sha256="0" * 64)),
    dict(verb="result", artifact=[]), dict(verb="ask"), dict({ask!r}, id="../../exit"), dict({ask!r}, options=[1]),
    dict({ask!r}, options=[dict(id=1, label="x")]), dict({ask!r}, kind="permission"), dict({ask!r}, deadlineSeconds=-1),
]):
    put(f"odd{{n}}", word)
"""


def test_what_is_no_word_is_noted_and_removed(task: Task, tmp_path: Path) -> None:
    victim = tmp_path / "victim" / "kept.json"
    victim.parent.mkdir()
    victim.write_text(json.dumps({"verb": "message", "text": "from outside"}), encoding="utf-8")
    agent(says(tmp_path, HOSTILE.format(victim=str(victim), ask=ASK)))
    assert ends()["status"] == "completed"
    assert victim.exists()
    assert "from outside" not in str(activity(task))
    assert sorted(path.name for path in (task.agent("a") / "outbox").iterdir()) == ["full.json"]
    assert 1 <= len(notes(task)) <= 10
    assert not task.events("interaction.requested")
    assert not task.events("result.declared")


@pytest.mark.slow
def test_a_flood_ends_with_its_agent(task: Task, tmp_path: Path) -> None:
    flood = "for n in range(30000): (outbox / f'{n}.json').touch()\nfor n in range(5000): (outbox / f'.{n}').touch()"
    agent(says(tmp_path, flood))
    assert ends()["status"] == "completed"
    assert len(notes(task)) <= 10


def test_another_folder_in_place_of_the_outbox_is_not_looked_into(task: Task, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept.json").write_text("{}", encoding="utf-8")
    swap = f"outbox.rename(outbox.with_name('was')); outbox.symlink_to({str(elsewhere)!r})"
    agent(says(tmp_path, swap))
    assert ends()["status"] == "completed"
    assert [path.name for path in elsewhere.iterdir()] == ["kept.json"]


def permission() -> dict[str, Any]:
    """Wait until a permission is asked for; return the question."""
    found = wait_until(lambda: [one for one in run("interact", "list", "--json").json if one.get("tool")], what="it")
    return dict(found[0])


def test_a_question_from_an_outbox_is_no_permission(task: Task, tmp_path: Path) -> None:
    # By its number the permission below would have this name, and find its answer there.
    word: dict[str, Any] = {**ASK, "id": "q3", "tool": "Bash", "arguments": {"command": "x"}, "idle": True}
    agent(says(tmp_path, f"put('q', {word!r}); taken('q')"), "--keep")
    wait_until(lambda: task.events("interaction.requested"), what="the question")
    body = json.loads((task.agent("a") / "interactions" / "q3.json").read_bytes())
    assert not {"tool", "arguments", "idle"} & set(body)
    run("interact", "respond", "a", "--id", "q3", "allow")
    run("send", "a", "permit touch x")
    question = permission()
    run("interact", "respond", "a", "--id", question["id"], "deny")
    run("send", "a", "--close", "say done")
    assert ends()["status"] == "completed"
    assert "denied" in str(activity(task))


def test_a_permission_of_the_program_cannot_be_taken_up(task: Task, tmp_path: Path) -> None:
    agent("permit touch x")
    blocked()
    outbox = task.agent("a") / "outbox"
    (outbox / ".x").write_text(json.dumps(ASK), encoding="utf-8")
    (outbox / ".x").rename(outbox / "x.json")
    wait_until(lambda: notes(task), what="the note")
    assert len(task.events("interaction.requested")) == 1
    run("interact", "respond", "a", "--id", "q1", "deny")
    assert ends()["status"] == "completed"


# -- the walls ------------------------------------------------------------------------------------------------------

HOME = "/home/me"
WALLS = {
    "workspace": f"{HOME}/project",
    "closed": [f"{HOME}/project/.agentctl", f"{HOME}/.config/agentctl", "/run/user/1/agentctl"],
    "inRoot": [],
    "hidden": [f"{HOME}/.config/agentctl/key", "/run/user/1/agentctl"],
    "outbox": f"{HOME}/project/.agentctl/tasks/t/agents/a/outbox",
    "temporary": {"/tmp": "/tmp", "TMPDIR": "/var/tmp/me"},
    "links": [],
}


def order(driver: str = "codex", walls: dict[str, Any] | None = None, **more: Any) -> Order:
    given = Order(driver=driver, program=driver, agent="general", prompt="do it", cwd=f"{HOME}/project", **more)
    return given._replace(walls=WALLS | (walls or {}))


def files(walls: dict[str, Any], **settings: Any) -> dict[str, Any]:
    found: dict[str, Any] = profile(order(walls=walls), settings)["filesystem"]
    return found


def test_the_profile_closes_what_is_ours_and_leaves_the_rest() -> None:
    made = profile(order(), {})
    assert made == {
        "extends": ":workspace",
        "filesystem": {
            ":workspace_roots": {".agentctl": "read", ".agentctl/tasks/t/agents/a/outbox": "write"},
            f"{HOME}/.config/agentctl": "read",
            "/run/user/1/agentctl": "read",
        },
    }
    assert "deny" not in json.dumps(made), "a denied read takes the effect from permissions"


@pytest.mark.parametrize("resume", [None, "thread"])
def test_a_thread_is_opened_within_its_walls(resume: str | None) -> None:
    settings = {"writable_roots": ["/data"]}
    given = order(resume=resume, permissions=[{"tool": "*", "pattern": "*", "answer": "allow"}])
    params = thread_params(given, {"sandbox_workspace_write": settings})
    assert params["permissions"] == "agentctl"
    assert params["config"]["permissions.agentctl"] == profile(given, settings)
    assert "sandbox" not in params, "it would be the program's own"
    assert codex_greeting(given)["capabilities"] == {"experimentalApi": True}, "without it no profile is taken"


def test_the_profile_keeps_what_the_person_has_configured() -> None:
    settings = {"writable_roots": ["/data"], "network_access": True, "exclude_slash_tmp": True}
    made = profile(order(), settings)
    assert made["network"] == {"enabled": True}
    assert (made["filesystem"]["/data"], made["filesystem"][":slash_tmp"]) == ("write", "read")
    assert ":tmpdir" not in made["filesystem"]


def test_folders_on_the_way_to_a_wall_are_held_where_they_could_be_renamed() -> None:
    assert files({"workspace": HOME})[":workspace_roots"][".config"] == "write"
    below = {"closed": ["/tmp/a/b/.agentctl"]}
    assert {"/tmp/a": "write", "/tmp/a/b": "write", "/tmp/a/b/.agentctl": "read"}.items() <= files(below).items()
    assert "/tmp/a" not in files(below, exclude_slash_tmp=True), "what the person closed is not opened"


def test_a_workspace_within_the_root_opens_nothing_beside_it() -> None:
    root = "/tmp/p/.agentctl"
    walls = {"workspace": f"{root}/worktrees/t/a", "closed": [root, f"{root}/worktrees/t/a/.agentctl"]}
    walls["outbox"] = f"{root}/tasks/t/agents/a/outbox"
    made = files(walls)
    assert [path for path, mode in made.items() if mode == "write"] == ["/tmp/p", walls["outbox"]]
    assert made[":workspace_roots"] == {".agentctl": "read"}


def test_a_path_that_reads_as_a_pattern_is_named_from_the_workspace_or_left_out() -> None:
    odd = f"{HOME}/p [x]"
    made = files({"workspace": odd, "closed": [f"{odd}/.agentctl", "/srv/[y]/.agentctl"]})
    assert made[":workspace_roots"][".agentctl"] == "read"
    assert "/srv/[y]/.agentctl" not in made, "nothing lets it be written anyway"
    assert files({"closed": ["/tmp/[y]/.agentctl"]})["/tmp/[y]/.agentctl"] == "read", "Codex refuses to begin"


def test_who_may_only_read_may_not_read_what_is_hidden() -> None:
    made = thread_params(order(read_only=True), {})["config"]["permissions.agentctl-read-only"]["filesystem"]
    assert {made[path] for path in WALLS["hidden"]} == {"deny"}
    assert "write" not in made.values()


def test_no_thread_is_opened_where_a_link_stands_in_the_way_of_a_wall() -> None:
    first, *more = CodexDialogue(order(walls={"links": [f"{HOME}/project/.agentctl"]})).begin()
    assert isinstance(first, StopProgram), "the program is told to begin"
    assert "is a link, and Codex's sandbox cannot protect" in str(first.outcome.message)
    assert more == []


def test_the_rules_for_claude_name_every_place() -> None:
    settings = next(word for word in claude_argv(order("claude")) if word.startswith("--settings="))
    denied = json.loads(settings.partition("=")[2])["permissions"]["deny"]
    assert {f"Edit(/{path}/**)" for path in WALLS["closed"]} <= set(denied)
    assert {f"Read(/{path})" for path in WALLS["hidden"]} <= set(denied)
    assert f"Edit(/{HOME}/project/**/.agentctl/**)" in denied


def test_the_rules_for_claude_leave_it_its_worktree() -> None:
    root = f"{HOME}/project/.agentctl"
    walls = {"workspace": f"{root}/worktrees/t/a", "inRoot": [f"{root}/tasks", f"{root}/current"]}
    settings = next(word for word in claude_argv(order("claude", walls)) if word.startswith("--settings="))
    denied = json.loads(settings.partition("=")[2])["permissions"]["deny"]
    assert f"Edit(/{root}/tasks/**)" in denied
    assert f"Edit(/{root}/**)" not in denied


def test_an_order_names_the_real_places(task: Task, tmp_path: Path) -> None:
    agent("say hello")
    walls = json.loads((task.agent("a") / "spec.json").read_bytes())["order"]["walls"]
    root, home = os.path.realpath(tmp_path / ".agentctl"), os.path.realpath(tmp_path / "home")
    own = [f"{home}/.config/agentctl", f"{home}/.local/state/agentctl"]
    assert walls["closed"] == [root, *own, os.path.realpath(tmp_path / "run" / "agentctl")]
    assert walls["outbox"] == f"{root}/tasks/{task.path.name}/agents/a/outbox"
    assert walls["links"] == []
    ends()


def test_a_link_in_the_workspace_is_named(task: Task, tmp_path: Path) -> None:
    (tmp_path / "work" / ".agentctl").symlink_to(tmp_path / ".agentctl")
    agent("say hello")
    walls = json.loads((task.agent("a") / "spec.json").read_bytes())["order"]["walls"]
    assert walls["links"] == [os.path.realpath(tmp_path / "work") + "/.agentctl"]
    ends()


@pytest.mark.slow
@pytest.mark.parametrize("target", ["{work}/link/agentctl", "../../work/./link/agentctl", "other"])
def test_a_link_behind_a_link_is_named(task: Task, tmp_path: Path, target: str) -> None:
    """Whoever replaces the inner one has got another folder for the person's own."""
    work, config = Path(os.path.realpath(tmp_path / "work")), tmp_path / "home" / ".config"
    (work / "real" / "agentctl").mkdir(parents=True)
    (work / "link").symlink_to("real")
    (config / "other").symlink_to(work / "link" / "agentctl")
    config.joinpath("agentctl").rename(tmp_path / "was")
    (tmp_path / "was" / "own").rename(work / "real" / "agentctl" / "own")
    (config / "agentctl").symlink_to(target.format(work=work))
    agent("say hello")
    walls = json.loads((task.agent("a") / "spec.json").read_bytes())["order"]["walls"]
    assert walls["links"] == [f"{work}/link"]
    ends()


@pytest.mark.parametrize("folder", [".agentctl", ".agentctl/tasks", ".agentctl/worktrees/t", "home/.config/agentctl"])
def test_no_agent_that_may_write_gets_what_is_closed_for_its_folder(task: Task, tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    refused = agent("say hello", "--cwd", tmp_path / folder, check=False)
    assert (refused.code, "decide what runs outside of the agent" in refused.err) == (1, True)
    assert not task.agent("a").exists()
    run("spawn", "--agent", "explore", "--name", "a", "--cwd", tmp_path / folder, "say hello")
    assert ends()["status"] == "completed"


# -- on a node ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_on_a_node_nothing_is_open_that_is_closed_at_the_head(task: Task, tmp_path: Path, is_elsewhere: bool) -> None:
    """Else an agent could write into the folder of a launch what the head carries out, outside of its sandbox."""
    (tmp_path / "project").mkdir()
    ask_engine("loopback", pollSeconds=0.5, silenceSeconds=1, **({"folder": str(tmp_path)} if is_elsewhere else {}))
    asks = 'me.ask("Bash", {"command": "make"}, lambda answer: me.answer(answer["behavior"]))'
    agent(plays(tmp_path, asks), "--runner", "loopback", "--cwd", tmp_path / "project")
    blocked()
    at_head, on_node = (
        json.loads((folder / "spec.json").read_bytes())["order"]["walls"]
        for folder in (task.agent("a"), there(task, "a"))
    )
    assert set(at_head["closed"]) < set(on_node["closed"])
    assert set(at_head["hidden"]) <= set(on_node["hidden"])
    launches = os.path.realpath(launch_of(task, "a").parent)
    assert launches in on_node["closed"]
    assert launches.startswith(at_head["closed"][0]) is not is_elsewhere
    run("interact", "respond", "a", "--id", "q1", "deny")
    assert ends()["status"] == "completed"


@pytest.mark.slow
def test_on_a_node_the_root_around_a_worktree_stays_closed(task: Task, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", repository], check=True)
    author = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    subprocess.run(["git", *author, "commit", "-q", "--allow-empty", "-m", "x"], cwd=repository, check=True)
    asks = 'me.ask("Bash", {"command": "make"}, lambda answer: me.answer(answer["behavior"]))'
    ask_engine("loopback", pollSeconds=0.5, silenceSeconds=1)
    agent(plays(tmp_path, asks), "--runner", "loopback", "--cwd", repository, "--worktree")
    blocked()
    walls = json.loads((there(task, "a") / "spec.json").read_bytes())["order"]["walls"]
    root = os.path.realpath(task.path.parent.parent)
    assert walls["workspace"].startswith(f"{root}/worktrees/")
    assert root in walls["closed"]
    assert f"{root}/tasks" in walls["inRoot"]
    run("interact", "respond", "a", "--id", "q1", "deny")
    assert ends()["status"] == "completed"

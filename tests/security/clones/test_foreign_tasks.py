"""At stake: the files of a task that somebody else made start nothing, allow nothing, and are not believed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from agentctl.adapters.paths import FilePath
from agentctl.adapters.taskdir import Root
from agentctl.errors import Refused
from agentctl.operations.start import from_template
from tests.advice import follow
from tests.agent_steps import agent, agent_world, ends
from tests.snapshots import snapshot
from tests.steps import Task, new_task, spawn, statuses
from tests.support import alike, by_turns, is_alive, remove, run, wait_for_text, wait_until, worker

FOREIGN = "was not made here by you"
#: What starts, writes or decides something, on the worker `w` of the task.
WRITERS = [
    *(
        "spawn -- true",
        "spawn --queue -- true",
        "resume-queue",
        "subtask general x",
        "cancel w",
        "cancel --all",
    ),
    *("pause w", "unpause w", "send w text", "resume w", "resume --lost", "interact respond w yes --id q1", "wait w"),
    *(
        "wait-all",
        "wait-any",
        "join",
        "worktrees list",
        "worktrees show w",
        "worktrees remove w",
        "activity w --rebuild",
    ),
    "doctor --close-breaker x",
]
READERS = [
    ("list",),
    ("show", "w"),
    ("why", "w"),
    ("logs", "w"),
    ("events",),
    ("tree",),
    ("usage",),
    ("timeline",),
    ("result", "w"),
    ("activity", "w"),
]


@pytest.fixture
def foreign(root: Path) -> Task:
    """A task with one ended worker, as a clone has it: everything is there but the mark among the person's files."""
    task = new_task()
    spawn(worker("exits", 0), name="w")
    task.ended("w")
    # Its shim writes the roster and gives its slot back when the end has been told.
    wait_until(lambda: is_alive(task.shim_of("w")), what="its shim to leave", accept=lambda alive: not alive)
    run("list")
    assert task.roster() == {"w": "completed"}
    forget(task)
    return task


def forget(task: Task) -> None:
    """Take the marks away: this person has made nothing."""
    shutil.rmtree(Path(os.environ["HOME"]) / ".config" / "agentctl" / "own")


@pytest.mark.parametrize("line", by_turns(WRITERS, 2))
def test_what_writes_or_starts_is_refused_and_changes_nothing(foreign: Task, line: str) -> None:
    before = snapshot(foreign.path)
    verb, dashes, behind = line.partition(" -- ")
    words = [*verb.split(), "--task", "t1", *(["--", *behind.split()] if dashes else [])]
    done = run(*words, check=False)
    assert (done.code, FOREIGN in done.err) == (1, True), done
    assert "agentctl trust" in done.err
    assert snapshot(foreign.path) == before


@pytest.mark.slow
@pytest.mark.parametrize("args", READERS, ids=" ".join)
def test_it_can_be_looked_at_and_nothing_is_written(foreign: Task, args: tuple[str, ...]) -> None:
    before = snapshot(foreign.path.parent.parent)
    assert run(*args, "--task", "t1").code == 0
    assert snapshot(foreign.path.parent.parent) == before


def test_doctor_mends_nothing_in_it(foreign: Task) -> None:
    (foreign.agent("w") / "changes.999999999.x.scratch").mkdir()
    os.mkfifo(foreign.path / "report.md")
    record = {"path": "/nowhere", "branch": "b", "repository": "/nowhere", "gitDir": "/nowhere"}
    (foreign.agent("w") / "worktree.json").write_text(json.dumps(record), encoding="utf-8")
    before = snapshot(foreign.path)
    told = run("doctor", "--fix", check=False).out
    assert snapshot(foreign.path) == before
    assert FOREIGN in told


def test_what_another_program_tells_its_hook_is_not_noted_in_it(foreign: Task) -> None:
    told = {"hook_event_name": "SubagentStart", "session_id": "s", "agent_id": "a1", "agent_type": "$(touch x)"}
    (foreign.agent("w") / "exit.json").unlink()
    before = snapshot(foreign.path)
    for inside in ({}, {"AGENTCTL_INSTANCE": "w"}):
        variables = {"AGENTCTL_ROOT": str(foreign.path.parent.parent), "AGENTCTL_TASK": "t1", **inside}
        assert run("hook", stdin=json.dumps(told), env=variables).err == ""
        assert snapshot(foreign.path) == before


def test_a_current_that_names_it_is_not_taken(foreign: Task) -> None:
    refused = run("list", check=False)
    assert (refused.code, "--task t1 looks at it" in refused.err) == (3, True)
    assert spawn(worker("exits", 0), name="mine", check=False).code == 1
    run("new", "Mine")
    told = spawn(worker("exits", 0), name="mine").json
    assert run("use", "t1", check=False).code == 1
    assert {row["taskId"]: row["own"] for row in run("tasks", "--json").json} == {"t1": False, told["taskId"]: True}


def test_what_its_log_does_not_tell_the_end_of_is_not_judged(foreign: Task) -> None:
    log = foreign.path / "events.jsonl"
    kept = [line for line in log.read_bytes().splitlines(keepends=True) if b"agent.completed" not in line]
    log.write_bytes(b"".join(kept))
    (foreign.agent("w") / "exit.json").unlink()
    rows = run("list", "--task", "t1", "--json").json
    assert [(row["status"], row["health"]) for row in rows] == [("running", None)]
    assert b"lost" not in log.read_bytes()


def test_trust_makes_it_ones_own_and_revoke_takes_that_back(foreign: Task) -> None:
    assert run("trust").out.split("\t")[1] == "untrusted"
    run("trust", foreign.path)
    assert statuses() == {"w": "completed"}
    spawn(worker("exits", 0), name="again")
    run("wait", "again")
    run("trust", "--revoke", foreign.path)
    assert FOREIGN in run("spawn", "--task", "t1", "--", "true", check=False).err


def test_another_task_in_the_place_of_a_removed_one_is_not_ones_own(root: Path) -> None:
    task = new_task()
    spawn(["true"], "--wait", name="mine")
    wait_for_text(task.path / "task.yaml", "completed")
    shutil.copytree(task.path, root / "clone", ignore=shutil.ignore_patterns("control", "*.tmp"))
    (root / "clone" / "origin").write_text("0" * 32, encoding="ascii")
    remove(task.path)
    (root / "clone").rename(task.path)
    assert FOREIGN in run("spawn", "--task", "t1", "--", "true", check=False).err


@pytest.mark.parametrize(
    "what", ["rm", "echo x >", *alike("rm -r {}; mkdir", "rm {}; mkfifo", "rm {}; ln -s /nowhere")]
)
@pytest.mark.slow
def test_whatever_a_worker_does_to_the_origin_it_can_be_stopped_and_doctor_mends_it(root: Path, what: str) -> None:
    task = new_task()
    line = f"{what.format(task.path / 'origin')} {task.path / 'origin'}; sleep 60"
    spawn(["sh", "-c", line], name="w")
    wait_until(lambda: FOREIGN in run("list").err, what="the origin to be gone")
    assert FOREIGN in run("spawn", "--task", "t1", "--", "true", check=False).err, "nothing is started"
    assert run("doctor", check=False).code == 1
    run("cancel", "w")
    assert task.exit("w")["status"] == "cancelled"  # type: ignore[index]
    assert run("doctor", "--fix").code == 0
    spawn(["true"], "--wait", name="again")


def test_where_another_task_lies_in_ones_place_doctor_puts_nothing_back(root: Path) -> None:
    task = new_task()
    (task.path / "origin").write_text("0" * 32, encoding="ascii")
    assert run("doctor", "--fix", check=False).code == 1
    assert (task.path / "origin").read_text(encoding="ascii") == "0" * 32


def test_a_task_that_was_trusted_is_not_so_again_by_the_same_files(foreign: Task, tmp_path: Path) -> None:
    shutil.copytree(foreign.path, tmp_path / "shipped", ignore=shutil.ignore_patterns("control", "*.tmp"))
    run("trust", foreign.path)
    spec = json.loads((foreign.agent("w") / "spec.json").read_bytes())
    assert spec["origin"] == (foreign.path / "origin").read_text(encoding="ascii").strip(), "its orders stay its own"
    remove(foreign.path)
    (tmp_path / "shipped").rename(foreign.path)
    assert FOREIGN in run("spawn", "--task", "t1", "--", "true", check=False).err


def test_what_is_trusted_is_told_as_what_it_is_and_found_by_any_path(root: Path, tmp_path: Path) -> None:
    task = new_task()
    (tmp_path / "link").symlink_to(root)
    by_link = tmp_path / "link" / "tasks" / "t1"
    assert [row["kind"] for row in run("trust", "--revoke", by_link, "--json").json] == ["task"]
    run("trust", by_link)
    allow_all(task)
    run("trust", by_link / "task.yaml")
    assert [row["kind"] for row in run("trust", "--revoke", by_link / "task.yaml", "--json").json] == ["rules"]
    template = root / "templates" / "survey"
    template.mkdir(parents=True)
    (template / "task.yaml").write_text(SURVEY, encoding="utf-8")
    run("trust", template)
    shutil.rmtree(template)
    assert [row["kind"] for row in run("trust", "--json").json if row["path"] == str(template)] == ["template"]
    assert [row["kind"] for row in run("trust", "--revoke", template, "--json").json] == ["template"]


def test_a_moved_task_has_to_be_vouched_for_anew(root: Path) -> None:
    task = new_task()
    spawn(["true"], "--wait", name="mine")
    task.path.rename(task.path.with_name("t2"))
    assert FOREIGN in run("spawn", "--task", "t2", "--", "true", check=False).err


def test_a_ticket_that_came_into_ones_own_task_is_not_resumed(root: Path) -> None:
    """By `git pull`, say: a repository may add files to a folder of one's own."""
    task = new_task()
    spawn(worker("exits", 0), name="w")
    task.ended("w")
    task.agent("evil").mkdir()
    spec = json.loads((task.agent("w") / "spec.json").read_bytes())
    told = {**spec, "agentInstance": "evil", "argv": ["touch", str(Path("PWNED").absolute())]}
    (task.agent("evil") / "spec.json").write_text(json.dumps(told), encoding="utf-8")
    (task.path / "queue" / f"4000.000000000001.{'a' * 16}.r.t1.evil").touch()
    assert run("resume-queue", "--json").json == []
    run("wait-all", check=False)
    assert not Path("PWNED").exists()


def test_an_order_that_was_put_in_the_place_of_ones_own_is_not_taken(world: Task) -> None:
    """By `git pull`, which overwrites what a .gitignore names."""
    agent("say x", "--wait")
    file = world.agent("a") / "spec.json"
    spec = json.loads(file.read_bytes())
    order = {**spec["order"], "permissions": [{"tool": "*", "pattern": "*", "answer": "allow"}]}
    file.write_text(json.dumps({**spec, "order": order, "origin": "0" * 32}), encoding="utf-8")
    refused = run("resume", "a", "go on", check=False)
    assert (refused.code, "may be somebody else's" in refused.err) == (1, True)


def test_a_shim_starts_no_order_that_is_not_its_tasks(root: Path) -> None:
    task = new_task(cap=1)
    spawn(worker("sleeps", 60), name="first")
    spawn(["touch", "PWNED"], "--queue", name="queued")
    file = task.agent("queued") / "spec.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), "origin": "0" * 32}), encoding="utf-8")
    run("cancel", "first")
    task.ended("queued")
    assert task.exit("queued")["reason"] == "not_started"  # type: ignore[index]
    assert not Path("PWNED").exists()


def test_a_sub_task_in_the_place_of_a_removed_one_is_not_ones_own(world: Task) -> None:
    told = run("subtask", "general", "say x", "--json").json
    child = world.path.parent / str(told["taskId"])
    (child / "origin").write_text("0" * 32, encoding="ascii")
    assert FOREIGN in run("spawn", "--task", child.name, "--", "true", check=False).err


def test_two_tasks_that_tell_of_each_other_are_nobodys_own_and_hold_nobody_up(root: Path) -> None:
    """Each names the other one as the one above it, in a log that takes a while to be read."""
    tasks = [new_task(), Task(Path(run("new", "other", "--json").json["path"]))]
    for task, other in (tasks, tasks[::-1]):
        config = json.loads((task.path / "config.json").read_bytes())
        head = config["head"]
        config |= {"parentTaskId": other.path.name, "head": f"{head}parentTaskId: {other.path.name}\n"}
        (task.path / "config.json").write_text(json.dumps(config), encoding="utf-8")
        file = task.path / "task.yaml"
        file.write_text(file.read_text(encoding="utf-8").replace(head, config["head"]), encoding="utf-8")
        nonce = (other.path / "origin").read_text(encoding="ascii").strip()
        event = {"ts": "2026-11-22T00:00:00.000Z", "type": "subtask.created", "taskId": task.path.name, "by": "user"}
        told = [{"taskId": "another"}] * 30_000 + [{"taskId": other.path.name, "origin": nonce}]
        with (task.path / "events.jsonl").open("a", encoding="utf-8") as log:
            log.writelines(json.dumps(event | {"payload": payload}) + "\n" for payload in told)
    forget(tasks[0])
    assert FOREIGN in run("spawn", "--task", tasks[0].path.name, "--", "true", check=False, timeout=20).err


def test_a_spawn_says_that_the_chosen_task_is_not_ones_own(foreign: Task) -> None:
    """A script that goes on in another task would not be seen to do so; each way that the hint names works."""
    before = sorted(path.name for path in foreign.path.parent.iterdir())
    for command in (["spawn", "--", "true"], ["subtask", "general", "Look"]):
        told = run(*command, check=False)
        assert (told.code, told.out) == (1, "")
        assert f"names {foreign.path.name}, which was not made here by you, or was moved" in told.err
        assert f'hint: if everything in it is yours: agentctl trust {foreign.path}; or agentctl new "TITLE"' in told.err
    assert sorted(path.name for path in foreign.path.parent.iterdir()) == before
    run("new", "Mine")
    assert run("spawn", "--json", "--", "true").json["taskId"] == "mine"
    run("use", "mine")
    run("trust", foreign.path)
    run("use", foreign.path.name)
    assert run("spawn", "--json", "--", "true").json["taskId"] == foreign.path.name
    run("wait-all", check=False)
    run("wait-all", "--task", "mine")


def test_a_task_that_a_worker_makes_is_not_chosen_for_the_person(root: Path) -> None:
    new_task()
    spawn(["sh", "-c", "agentctl new Other"], "--wait", name="w")
    assert [row["taskId"] for row in run("tasks", "--json").json if row["current"]] == ["t1"]


def test_a_worker_with_another_home_belongs_to_its_task(root: Path, tmp_path: Path) -> None:
    new_task()
    home = tmp_path / "other"
    home.mkdir()
    inside = "agentctl report result --summary done && agentctl spawn --name child -- true && agentctl wait child"
    spawn(["sh", "-c", inside], "--env", f"HOME={home}", name="w")
    run("wait-all")
    assert statuses() == {"w": "completed", "child": "completed"}


# -- rules that allow --------------------------------------------------------------------------------------------------


@pytest.fixture
def world(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    return agent_world(tmp_path, monkeypatch)


def allow_all(task: Task) -> Path:
    file = task.path / "task.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("config: {", "config: {permissions: allow, ", 1), encoding="utf-8")
    return file


@pytest.mark.follows("operations/where/ownership.check_rules: agentctl trust")
def test_rules_that_somebody_wrote_into_a_task_allow_nothing_without_a_persons_word(world: Task) -> None:
    file = allow_all(world)
    refused = agent("permit make", check=False)
    assert (refused.code, "have not vouched for: * *" in refused.err) == (1, True)
    refused = run("subtask", "general", "permit make", check=False)
    assert "have not vouched for" in refused.err, "a sub-task does not take them over either"
    follow(refused, f"agentctl trust {file}")
    agent("permit make", "--wait")
    assert ends()["result"]["finalMessage"] == "allowed"
    file.write_text(
        file.read_text(encoding="utf-8").replace("permissions: allow", "permissions: [{tool: Bash, answer: allow}]")
    )
    assert "have not vouched for" in agent("permit make", name="b", check=False).err, "any change asks anew"


def test_a_cache_of_the_configuration_allows_nothing(world: Task) -> None:
    run("list")
    cache = world.path / "config.json"
    known = json.loads(cache.read_bytes())
    cache.write_text(json.dumps({**known, "permissions": [{"tool": "*", "pattern": "*", "answer": "allow"}]}))
    assert "have not vouched for" in agent("permit make", check=False).err


# -- templates ---------------------------------------------------------------------------------------------------------

SURVEY = """\
name: survey
config: {permissions: allow}
roster:
  - {name: evil, argv: [touch, PWNED]}
"""


@pytest.fixture
def shipped(root: Path) -> Path:
    folder = root / "templates" / "survey"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "task.yaml").write_text(SURVEY, encoding="utf-8")
    return folder


def test_a_template_of_a_root_is_used_once_it_is_trusted_as_it_is(shipped: Path, root: Path) -> None:
    refused = run("new", "--template", "survey", "--set", "path=.", "--start", check=False)
    assert (refused.code, f"agentctl trust {shipped}" in refused.err) == (1, True)
    assert not (root / "tasks").exists()
    assert "it runs touch PWNED" in run("trust").out
    assert [row["usable"] for row in run("templates", "--json").json] == [False]
    run("trust", shipped)
    (shipped / "more.sh").write_text("true", encoding="utf-8")
    assert "is not trusted" in run("new", "--template", "survey", check=False).err, "any change asks anew"
    run("trust", shipped)
    run("new", "--template", "survey", "--start")
    run("wait-all")
    assert Path("PWNED").exists()


def test_a_template_that_changes_while_it_is_copied_makes_no_task(
    shipped: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("trust", shipped)
    copy = from_template._copy

    def meanwhile(folder: Path, target: FilePath) -> None:
        (folder / "more.sh").write_text("true", encoding="utf-8")
        copy(folder, target)

    monkeypatch.setattr(from_template, "_copy", meanwhile)
    with pytest.raises(Refused, match="was changed meanwhile"):
        from_template.create_from_template(Root(str(root)), "survey", {})
    assert run("tasks", "--json").json == []


@pytest.mark.parametrize("kind", ["link", "fifo", "sparse", "many"])
def test_a_template_that_holds_more_than_files_is_refused(shipped: Path, tmp_path: Path, kind: str) -> None:
    odd = shipped / "odd"
    if kind == "link":
        odd.symlink_to(tmp_path)
    elif kind == "fifo":
        os.mkfifo(odd)
    elif kind == "sparse":
        odd.touch()
        os.truncate(odd, 1 << 40)
    else:
        odd.mkdir()
        for number in range(1100):
            (odd / str(number)).touch()
    told = {"link": "a link", "fifo": "a FIFO"}.get(kind, "more than a template may")
    for command in (("trust", shipped), ("new", "--template", "survey")):
        refused = run(*command, check=False, timeout=10)
        assert (refused.code, told in refused.err) == (1, True), refused

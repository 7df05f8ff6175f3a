"""At stake: a request that is sent again under its key does nothing twice, and another one with that key is refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentctl.adapters.taskdir import Root, TaskDir
from agentctl.domain.same_request import digests_of
from agentctl.errors import Conflict
from agentctl.interfaces.screen.start.start_line import known_names, parse_start_line, start_by_line
from agentctl.operations.start.new_task import create_task
from agentctl.operations.start.requests import SpawnRequest
from agentctl.operations.start.spawning import spawn_workers
from agentctl.operations.start.task_keys import make_task_once
from agentctl.operations.talk.messaging import deliver_message
from tests.advice import follow
from tests.agent_steps import agent, agent_world, ends
from tests.shells import define_shells
from tests.steps import Task, held, new_task, spawn, spawn_batch, statuses
from tests.support import Completed, run, start, worker


def once(*line: str | Path, code: int = 0) -> Completed:
    """Run a line and return how it ended, which has to be with this code."""
    done = run(*line, check=False)
    assert done.code == code, done
    return done


def texts_of(task: Task, instance: str) -> list[str]:
    """Return the messages in a worker's inbox, in order."""
    return [json.loads(file.read_bytes())["text"] for file in sorted((task.agent(instance) / "inbox").glob("*.json"))]


@pytest.fixture
def waiting(root: Path, tmp_path: Path) -> Iterator[Task]:
    """Return a task with two workers, a and b, that run until the end of the test."""
    task = new_task()
    spawn_batch([held(tmp_path / "gate", "a"), held(tmp_path / "gate", "b")])
    yield task
    (tmp_path / "gate").touch()
    task.ended("a", "b")


# -- another request ---------------------------------------------------------------------------------------------------


def test_another_start_with_the_same_key_is_refused_by_what_differs(root: Path) -> None:
    task = new_task()
    spawn(["true"], "--key", "k", "--env", "A=1", name="a")
    refused = once("spawn", "--key", "k", "--", "true", code=8)
    assert "the key 'k' has started a already, and that request differs in env\n" in refused.err
    for more, what in (
        (["--", "false"], "argv"),
        (["--cwd", "/", "--", "false"], "argv and cwd"),
        (["--retries", "1", "--cwd", "/", "--", "false"], "argv, cwd and retries"),
    ):
        refused = once("spawn", "--key", "k", "--env", "A=1", *more, code=8)
        assert f"differs in {what}\n" in refused.err
    assert follow(refused, "agentctl show a").code == 0
    assert once("spawn", "--json", "--key", "k", "--env", "A=secret", "--priority", "3", "--", "true").json["reused"]
    assert list(statuses()) == ["a"]
    assert json.loads(next((task.path / "keys").iterdir()).read_bytes())["request"].keys() == {"kind", "argv", "env"}


def test_a_record_that_does_not_say_what_it_was_for_is_for_any_request(root: Path) -> None:
    task = new_task()
    spawn(["true"], "--key", "k", name="a")
    (record,) = (task.path / "keys").iterdir()
    known = json.loads(record.read_bytes())
    del known["request"]
    record.write_text(json.dumps(known))
    assert spawn(["false"], "--key", "k").json["agentInstance"] == "a"


def test_a_key_that_is_none_is_refused(waiting: Task) -> None:
    assert "a key has 1 to 10000 characters" in once("spawn", "--key", "", "--", "true", code=2).err
    assert once("send", "a", "x", "--key", "", code=2).err
    assert once("retry", "--failed", "--key", "k", code=2).err


def test_a_key_that_was_refused_is_free(root: Path) -> None:
    new_task(cap=1)
    spawn(worker("sleeps", 60), name="a")
    once("spawn", "--key", "k", "--no-queue", "--", "true", code=5)
    once("cancel", "a")
    assert spawn(["false"], "--key", "k", "--wait", name="b", check=False).code == 1


def test_who_got_the_name_of_a_refused_start_is_not_what_its_key_did(root: Path) -> None:
    new_task(cap=1)
    spawn(worker("sleeps", 60), name="busy")
    once("spawn", "--key", "k", "--no-queue", "--name", "b", "--", "true", code=5)
    once("cancel", "busy")
    spawn(["false"], "--wait", name="b", check=False)
    again = spawn(["true"], "--key", "k", name="c").json
    assert (again["agentInstance"], again["reused"]) == ("c", False)
    assert spawn(["true"], "--key", "k", name="c").json["reused"]


def test_a_number_of_0_is_said_as_any_other(root: Path) -> None:
    new_task()
    spawn(["true"], "--key", "k", "--grace-seconds", "0", name="a")
    assert "differs in grace_seconds" in once("spawn", "--key", "k", "--", "true", code=8).err


def test_a_line_of_the_screen_that_is_entered_again_starts_one_worker(root: Path) -> None:
    task = new_task()
    known = known_names(Root(str(root)))
    for _ in range(2):
        start_by_line(Root(str(root)), parse_start_line("name:a ! true", known, "t1"), "k")
    task.ended("a")
    assert list(statuses()) == ["a"]


# -- messages ----------------------------------------------------------------------------------------------------------


def test_a_message_is_sent_once(waiting: Task, tmp_path: Path) -> None:
    first = once("send", "a", "hello", "--key", "k", "--json").json
    assert once("send", "a", "hello", "--key", "k", "--json").json == first
    for line, what in (
        (("a", "bye"), "text"),
        (("a", "hello", "--interrupt"), "interrupt"),
        (("b", "hello"), "worker"),
    ):
        refused = once("send", *line, "--key", "k", code=8)
        assert f"the key 'k' has sent m1 to a already, and that request differs in {what}" in refused.err
    assert "differs in what it asks for" in once("spawn", "--key", "k", "--", "true", code=8).err
    once("send", "a", "hello", "--key", "another")
    once("send", "a", "hello")
    assert texts_of(waiting, "a") == ["hello"] * 3
    assert texts_of(waiting, "b") == []
    (tmp_path / "gate").touch()
    waiting.ended("a")
    assert once("send", "a", "hello", "--key", "k", "--json").json == first
    once("send", "a", "hello", "--key", "new", code=1)
    assert len(waiting.events("message.sent")) == 3


@pytest.mark.parametrize("point", ["send.after-key", "send.after-message"])
def test_a_sender_killed_on_the_way_has_sent_it_once_or_never(waiting: Task, point: str) -> None:
    killed = run("send", "a", "hello", "--key", "k", env={"AGENTCTL_FAILPOINT": point}, check=False)
    assert killed.code == -9
    assert len(texts_of(waiting, "a")) == (point == "send.after-message")
    assert once("send", "a", "hello", "--key", "k", "--json").json["messageId"] == "m1"
    assert texts_of(waiting, "a") == ["hello"]


@pytest.mark.slow
def test_twenty_that_send_it_at_once_send_one(waiting: Task) -> None:
    racers = [start("send", "a", "hello", "--key", "k", "--json") for _ in range(20)]
    told = {racer.communicate(timeout=60)[0] for racer in racers}
    assert len(told) == 1
    assert texts_of(waiting, "a") == ["hello"]


# -- tasks -------------------------------------------------------------------------------------------------------------


@pytest.mark.follows("operations/start/task_keys.make_task_once: agentctl use")
def test_a_task_is_made_once(root: Path) -> None:
    first = once("new", "Port it", "--key", "k", "--json").json
    assert once("new", "Port it", "--key", "k", "--json").json == {**first, "reused": True}
    refused = once("new", "Port that", "--key", "k", code=8)
    assert "the key 'k' has made the task port-it already, and that request differs in title" in refused.err
    assert follow(refused, "agentctl use port-it").code == 0
    assert once("new", "Port it", "--json").json["taskId"] == "port-it-2"


@pytest.mark.follows("operations/start/task_keys._refuse_put_away: agentctl archive --bring-back")
def test_a_task_that_was_put_away_is_not_made_again_by_its_key(root: Path) -> None:
    first = once("new", "Port it", "--key", "k", "--json").json
    once("archive", "port-it")
    refused = once("new", "Port it", "--key", "k", code=1)
    assert "the key 'k' has made the task port-it, which was put away as port-it" in refused.err
    follow(refused, "agentctl archive --bring-back port-it")
    assert once("new", "Port it", "--key", "k", "--json").json == {**first, "reused": True}

    once("archive", "port-it")
    once("new", "Port it", "--id", "port-it")
    once("new", "Port it", "--key", "k", code=1)
    once("archive", "--delete", "port-it", "--yes")
    assert once("new", "Port it", "--key", "k", "--json").json["taskId"] == "port-it-2"


def test_a_maker_killed_on_the_way_leaves_its_key_to_the_next(root: Path) -> None:
    killed = run("new", "Port it", "--key", "k", env={"AGENTCTL_FAILPOINT": "new.after-key"}, check=False)
    assert killed.code == -9
    made = once("new", "Port it", "--key", "k", "--json").json
    assert "reused" not in made
    assert [one["taskId"] for one in run("tasks", "--json").json] == [made["taskId"]]


@pytest.mark.slow
def test_twenty_that_make_it_at_once_make_one(root: Path) -> None:
    racers = [start("new", "Port it", "--key", "k", "--json", "--no-use") for _ in range(20)]
    told = [json.loads(racer.communicate(timeout=60)[0]) for racer in racers]
    assert {one["taskId"] for one in told} == {"port-it"}
    assert sum("reused" not in one for one in told) == 1


# -- sub-tasks ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def above(root: Path) -> Task:
    """Return a task, and define agents whose prompt is a script."""
    define_shells("shell", "other")
    return new_task()


def tasks() -> list[str]:
    """Return the ids of all tasks."""
    return sorted(one["taskId"] for one in run("tasks", "--json").json)


@pytest.mark.follows("operations/start/request_keys._check_same: agentctl use")
def test_a_subtask_is_begun_once(above: Task) -> None:
    line = ("subtask", "shell", ": look", "--intent", "echo it", "--key", "k", "--json")
    first = once(*line).json
    assert first["finalAssistantMessage"] == "it"
    assert once(*line, "--priority", "5").json == first, "when its turn comes is not what it does"
    begun = once(*line, "--no-wait").json
    assert (begun["taskId"], begun["agentInstance"], begun["reused"]) == ("look", "shell-1", True)
    for words, what in (
        (("shell", ": see", "--intent", "echo it"), "title"),
        (("other", ": look", "--intent", "echo that"), "agent and intent"),
        (("shell", ": look", "--intent", "echo it", "--cwd", "/"), "cwd"),
    ):
        refused = once("subtask", *words, "--task", "t1", "--key", "k", code=8)
        assert f"the key 'k' has made the sub-task look already, and that request differs in {what}" in refused.err
        assert follow(refused, "agentctl use look").code == 0
    assert "differs in what it asks for" in once("spawn", "--key", "k", "--task", "t1", "--", "true", code=8).err
    assert tasks() == ["look", "t1"]
    assert len(above.events("subtask.created")) == 1
    assert "has ended" in once("send", "shell-1", "x", "--task", "look", "--key", "k", code=1).err, "it is free there"


def test_a_key_that_started_a_worker_makes_no_subtask(above: Task) -> None:
    spawn(["true"], "--key", "k", name="a")
    assert "has started a already" in once("subtask", "shell", ": look", "--key", "k", code=8).err
    assert tasks() == ["t1"]


def test_a_subtask_is_found_by_its_key_also_where_no_other_could_begin(above: Task, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    line = ("subtask", "shell", ": look", "--intent", "exit 0", "--artifact", tmp_path / "file", "--key", "k", "--json")
    first = once(*line).json
    (tmp_path / "file").unlink()
    assert once(*line).json == first
    once("rm", "shell-1", "--task", "look")
    once(*line, code=2)
    assert tasks() == ["look", "t1"]


def test_a_subtask_that_was_refused_leaves_its_key_free(above: Task) -> None:
    once("subtask", "shell", ": look", "--artifact", "nowhere", "--key", "k", code=2)
    assert once("subtask", "other", ": look", "--key", "k", "--json").json["subTaskStatus"] == "Success"
    assert tasks() == ["look", "t1"]


@pytest.mark.parametrize("point", ["subtask.after-key", "spawn.after-mkdir", "spawn.before-roster"])
def test_who_is_killed_beginning_a_subtask_has_begun_one(above: Task, point: str) -> None:
    line = ("subtask", "shell", ": look", "--intent", "echo it", "--key", "k", "--json")
    assert run(*line, env={"AGENTCTL_FAILPOINT": point}, check=False).code == -9
    told = once(*line).json
    assert (told["taskId"], told["agentId"], told["finalAssistantMessage"]) == ("look", "shell-1", "it")
    assert (tasks(), len(above.events("subtask.created"))) == (["look", "t1"], 1)
    assert [one["agentInstance"] for one in run("list", "--task", "look", "--json").json] == ["shell-1"]


@pytest.mark.slow
def test_twenty_that_begin_it_at_once_begin_one(above: Task) -> None:
    line = ("subtask", "shell", ": look", "--intent", "echo it", "--key", "k", "--json")
    told = {racer.communicate(timeout=100)[0] for racer in [start(*line) for _ in range(20)]}
    assert [json.loads(one)["finalAssistantMessage"] for one in told] == ["it"]
    assert (tasks(), len(above.events("subtask.created"))) == (["look", "t1"], 1)


# -- further runs ------------------------------------------------------------------------------------------------------


def test_a_work_is_tried_again_once(root: Path) -> None:
    new_task()
    for name in ("a", "b"):
        spawn(["false"], "--wait", name=name, check=False)
    first = once("retry", "a", "--key", "k", "--json").json
    run("wait", "a-2", check=False)
    again = once("retry", "a", "--key", "k", "--json").json
    assert (first["agentInstance"], again["agentInstance"], again["reused"]) == ("a-2", "a-2", True)
    assert "differs in worker" in once("retry", "b", "--key", "k", code=8).err
    both = once("retry", "a", "b", "--key", "both", "--json").json
    run("wait-all", check=False)
    assert once("retry", "a", "b", "--key", "both", "--json").json == [
        {**one, "reused": True, "status": "failed", "pid": again["pid"]}
        | {"pid": run("show", one["agentInstance"], "--json").json["pid"]}
        for one in both
    ]
    assert sorted(statuses()) == ["a", "a-2", "a-3", "b", "b-2"]


def test_an_agent_is_continued_once(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent_world(tmp_path, monkeypatch)
    agent("say hello")
    ends()
    first = once("resume", "a", "say more", "--key", "k", "--json").json
    again = once("resume", "a", "say more", "--key", "k", "--json").json
    assert (again["agentInstance"], again["reused"]) == (first["agentInstance"], True)
    assert "differs in prompt" in once("resume", "a", "say less", "--key", "k", code=8).err
    ends(first["agentInstance"])
    assert once("resume", "a", "say more", "--key", "k", "--json").json["agentInstance"] == first["agentInstance"]
    assert len(statuses()) == 2


@pytest.mark.slow
def test_twenty_that_continue_it_at_once_continue_it_once(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_world(tmp_path, monkeypatch)
    agent("say hello")
    ends()
    racers = [start("resume", "a", "say more", "--key", "k", "--json", "--queue") for _ in range(20)]
    told = [json.loads(racer.communicate(timeout=60)[0]) for racer in racers]
    assert len({one["agentInstance"] for one in told}) == 1
    assert sum(not one["reused"] for one in told) == 1
    ends(told[0]["agentInstance"])


def test_the_workers_of_a_template_are_started_once(root: Path) -> None:
    folder = root / "templates" / "two"
    folder.mkdir(parents=True)
    (folder / "task.yaml").write_text("roster:\n- {name: a, argv: ['true']}\n- {argv: ['true']}\n", encoding="utf-8")
    run("trust", folder)
    made = once("new", "--template", "two", "--key", "t", "--start", "--json").json
    again = once("new", "--template", "two", "--key", "t", "--start", "--json").json
    assert [one["agentInstance"] for one in again["workers"]] == [one["agentInstance"] for one in made["workers"]]
    assert all(one["reused"] for one in again["workers"])
    assert once("spawn-template", "--key", "t", "--json").json[0]["reused"]
    assert "were started already" in once("spawn-template", code=1).err
    run("wait-all")
    assert len(statuses()) == 2


def test_a_worker_of_a_template_may_have_a_key_of_its_own(root: Path) -> None:
    folder = root / "templates" / "two"
    folder.mkdir(parents=True)
    roster = "roster:\n- {name: a, argv: ['true'], key: own}\n- {name: b, argv: ['true']}\n"
    (folder / "task.yaml").write_text(roster, encoding="utf-8")
    run("trust", folder)
    once("new", "--template", "two", "--key", "t", "--start", "--json")
    again = once("new", "--template", "two", "--key", "t", "--start", "--json").json
    assert [(one["agentInstance"], one["reused"]) for one in again["workers"]] == [("a", True), ("b", True)]
    assert "were started already: a, b" in once("spawn-template", code=1).err


# -- answers -----------------------------------------------------------------------------------------------------------


def test_the_same_answer_again_is_what_it_was_and_another_one_is_refused(root: Path) -> None:
    task = new_task()
    spawn(worker("asks", "--kind", "confirm", "Go?"), name="a")
    task.has("interaction.requested", "a")
    first = once("answer", "a", "--id", "q1", "yes", "--json").json
    task.ended("a")
    assert once("answer", "a", "--id", "q1", "yes", "--json").json == first
    assert "was answered already, with 'yes' by user" in once("answer", "a", "--id", "q1", "no", code=1).err
    assert len(task.events("interaction.responded")) == 1


# -- any sequence ------------------------------------------------------------------------------------------------------


class _World:
    """A root in which nothing is started, and ten requests, each with a key of its own."""

    def __init__(self, folder: Path) -> None:
        self.root = Root(str(folder))
        self.task = create_task(self.root, "T", task_id="t", config={"maxConcurrentAgents": 0}, is_chosen=False)
        for name in ("x", "y"):
            spawn_workers(self.task, [SpawnRequest(argv=["true"], name=name)], queue=True)

    def request(self, number: int, key: str | None = None) -> Any:
        """Carry out one of them, and return what it says; under another one's key if that is given."""
        kind, key = number % 3, key or f"k{number}"
        if kind == 0:
            spawned = spawn_workers(self.task, [SpawnRequest(argv=["echo", str(number)], key=key)], queue=True)[0]
            return spawned.agent_instance
        if kind == 1:
            return deliver_message(self.task, "xy"[number % 2], f"text {number}", key=key)
        title = f"title {number % 2}"
        said = digests_of("task", {"title": title, "number": number})
        made = make_task_once(
            self.root, key, said, lambda note: create_task(self.root, title, is_chosen=False, note=note)
        )
        return made.task.id

    def seen(self) -> Any:
        """Return what there is now."""
        workers = {name: _argv(self.task, name) for name in self.task.instances()}
        inboxes = [
            sorted((path.name[:6], json.loads(path.read_bytes())["text"]) for path in Path(str(inbox)).glob("*.json"))
            for inbox in (self.task.worker("x").inbox, self.task.worker("y").inbox)
        ]
        return workers, inboxes, self.root.task_ids()


def _argv(task: TaskDir, name: str) -> list[str]:
    return list(json.loads(Path(str(task.worker(name).spec)).read_bytes())["argv"])


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numbers=st.lists(st.integers(0, 5), max_size=12), other=st.integers(0, 5))
def test_any_sequence_with_repeats_is_the_one_without_them(
    new_folder: Callable[[], Path], numbers: list[int], other: int
) -> None:
    repeated, plain = _World(new_folder()), _World(new_folder())
    said: dict[int, Any] = {}
    for number in numbers:
        assert repeated.request(number) == said.setdefault(number, repeated.request(number))
    for number, outcome in said.items():
        assert plain.request(number) == outcome
    assert repeated.seen() == plain.seen()
    for number in said:
        if other != number and {other % 3, number % 3} != {2, 0} and {other % 3, number % 3} != {2, 1}:
            with pytest.raises(Conflict):
                repeated.request(other, f"k{number}")
    assert repeated.seen() == plain.seen()


@pytest.fixture
def new_folder(root: Path, tmp_path: Path) -> Callable[[], Path]:
    """Return what names a new folder for a root each time."""
    count = iter(range(10_000))
    return lambda: tmp_path / f"{next(count)}" / ".agentctl"

"""At stake: a link in a message gives its one answer to its one question, once, in time, and allows nothing."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters import locks
from agentctl.adapters.served import RootServer, announce, kept_token, live_server
from agentctl.adapters.taskdir import Root, WorkerDir
from agentctl.domain.notice.answer_links import LIFETIME_S, AnswerLink, sign
from agentctl.drivers.dialogue import Ask
from agentctl.errors import AgentctlError, NotFound, Refused
from agentctl.operations.talk import interacting
from agentctl.operations.talk.answering_link import answer_by_link
from agentctl.supervision.worker.environment import store_folder
from agentctl.worker_programs.agent_host.host_questions import ProgramQuestions
from tests.listener import Listener, configure
from tests.served import TOKEN, URL, file_of, labels, link_to, pressed, serving, used
from tests.snapshots import files_with
from tests.steps import Task, held, new_task, spawn, spawn_batch
from tests.support import PROGRAM, REPOSITORY, alike, run, wait_until

pytestmark = pytest.mark.server

CONFIRM = [*PROGRAM, "interact", "ask", "--kind", "confirm", "Deploy?"]
MEANS = {"allow": "allow", "allow_always": "allow_always", "deny": "deny"}


@pytest.fixture
def home(root: Path, tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def ntfy(root: Path, home: Path) -> Iterator[Listener]:
    """A phone with buttons."""
    listener = Listener()
    phone = {"type": "ntfy", "url": listener.url("mine"), "events": ["blocked", "failed"], "buttons": True}
    configure(home, {"phone": phone})
    yield listener
    listener.close()
    task = root / "tasks" / "t1"
    wait_until(lambda: not locks.is_alive_held(task / "sender.json"), what="the sender to leave")


@contextmanager
def asking(*more: str, argv: list[str] | None = None) -> Iterator[Task]:
    """A worker that waits for an answer."""
    task = new_task()
    spawn([*(argv or CONFIRM), *more], name="a")
    task.has("agent.blocked", "a")
    yield task
    if not task.exit("a"):
        run("interact", "respond", "a", "--id", "q1", "no", check=False)
    task.ended("a")


def answered(task: Task) -> list[tuple[str, str]]:
    return [(row["payload"]["answer"], row["payload"]["by"]) for row in task.events("interaction.responded")]


def rewritten(task: Task, **changes: Any) -> None:
    """Change a question as its worker could."""
    file = task.agent("a") / "interactions" / "q1.json"
    told = {**json.loads(file.read_bytes()), **changes}
    file.write_text(json.dumps({key: value for key, value in told.items() if value is not None}), encoding="utf-8")


# -- in time, for that question, with that answer ----------------------------------------------------------------------


def test_a_link_expires(root: Path) -> None:
    with asking() as task:
        link = link_to(root, "yes")
        for now in (link.expires, link.expires + 1e6):
            with pytest.raises(Refused, match="has expired"):
                used(root, link, now=now)
        assert answered(task) == []
        assert link.expires <= time.time() + LIFETIME_S
        assert used(root, link, now=link.expires - 1)["answer"] == "yes"


def test_no_link_but_the_servers_own_answers(root: Path) -> None:
    with asking() as task:
        link = link_to(root, "yes")
        text, no = sign(link, TOKEN), sign(link_to(root, "no"), TOKEN)
        forged = [
            sign(link, "another-token-of-16"), text[:-1], f"{text}=", text.replace(".", ""), f"{text}.{text}", ".", "",
            f"{no.split('.')[0]}.{text.split('.')[1]}", "x" * 100_000, "é.é", f" {text}",
        ]  # fmt: skip
        for one in forged:
            with pytest.raises(Refused, match="not made by this server"):
                answer_by_link(Root(str(root)), one, TOKEN, time.time())
        assert answered(task) == []


@pytest.mark.parametrize(
    "changes",
    [{"question": "q2"}, {"instance": "b"}, {"task": "t2"}, {"digest": "x"}, {"answer": "maybe"}, {"answer": "y"},
     {"answer": ""}, {"answer": "Yes"}],
)  # fmt: skip
def test_what_no_message_offers_is_refused_even_if_it_is_signed(root: Path, changes: dict[str, Any]) -> None:
    with asking() as task:
        with pytest.raises((Refused, NotFound)):
            used(root, link_to(root, "yes")._replace(**changes))
        assert answered(task) == []


@pytest.mark.parametrize(
    "changes",
    [{"question": "Delete all?"}, {"askedAt": "2026-11-25T03:30:05.737Z"}, {"kind": "input"}, {"tool": "Bash"}],
)
def test_a_question_that_changed_under_its_id_is_not_answered(root: Path, changes: dict[str, str]) -> None:
    with asking() as task:
        link, asked = link_to(root, "yes"), (task.agent("a") / "interactions" / "q1.json").read_bytes()
        rewritten(task, **changes)
        with pytest.raises(Refused, match="q1 of a is a different question by now"):
            used(root, link)
        assert answered(task) == []
        (task.agent("a") / "interactions" / "q1.json").write_bytes(asked)
        assert used(root, link)["answer"] == "yes"


@pytest.mark.parametrize("changes", [{"question": "Delete all?"}, {"tool": "Bash", "means": {"yes": "allow"}}])
def test_nor_is_one_that_changes_at_the_last_moment(
    root: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with asking() as task:
        link = link_to(root, "yes")

        def late(path: str) -> locks.locked:
            rewritten(task, **changes)
            return locks.locked(path)

        with monkeypatch.context() as patch:
            patch.setattr(interacting, "locked", late)
            with pytest.raises(Refused, match="q1 of a is a different question by now"):
                used(root, link)
        assert answered(task) == []
        rewritten(task, question="Deploy?", tool=None, means=None)


# -- once --------------------------------------------------------------------------------------------------------------


def test_a_link_counts_once_also_if_it_is_used_twice_at_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with asking() as task:
        links = [link_to(root, "yes"), link_to(root, "no"), link_to(root, "yes"), link_to(root, "no")]
        together = threading.Barrier(len(links))
        given: list[str] = []
        refused: list[str] = []

        def at_once(path: str) -> locks.locked:
            together.wait(20)  # Each has found the question open, and none has the lock.
            return locks.locked(path)

        def use(link: AnswerLink) -> None:
            try:
                given.append(used(root, link)["answer"])
            except AgentctlError as error:
                refused.append(error.message)

        with monkeypatch.context() as patch:
            patch.setattr(interacting, "locked", at_once)
            threads = [threading.Thread(target=use, args=(link,)) for link in links]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len(given) == 2  # The second one gave the same answer.
        assert len(set(given)) == 1
        assert refused == [f"q1 of a was answered already, with {given[0]!r} by user"] * 2
        task.ended("a")
        assert answered(task) == [(given[0], "user")]
        assert (task.agent("a") / "stdout.log").read_text() == f"{given[0]}\n"
        other = link_to(root, "no" if given[0] == "yes" else "yes")
        with pytest.raises(Refused, match="answered already"):
            used(root, other)


def test_an_answer_from_elsewhere_comes_first_and_an_end_closes(root: Path) -> None:
    with asking() as task:
        link = link_to(root, "yes")
        run("interact", "respond", "a", "--id", "q1", "no")
        with pytest.raises(Refused, match="answered already, with 'no' by user"):
            used(root, link)
        assert answered(task) == [("no", "user")]
    with_end = link_to(root, "yes")
    (task.agent("a") / "interactions" / "q1.answer.json").unlink()
    with pytest.raises(Refused, match="a has ended"):
        used(root, with_end)


def test_a_task_that_is_not_ones_own_is_not_answered(root: Path, home: Path) -> None:
    with asking() as task:
        link, marks = link_to(root, "yes"), home / ".config" / "agentctl" / "own"
        marks.rename(marks.with_name("elsewhere"))
        with pytest.raises(Refused, match="was not made here by you"):
            used(root, link)
        marks.with_name("elsewhere").rename(marks)
        assert answered(task) == []


# -- a request for permission ------------------------------------------------------------------------------------------


@pytest.fixture
def permit(ntfy: Listener, root: Path, tmp_path: Path) -> Iterator[tuple[WorkerDir, ProgramQuestions]]:
    """A worker whose agent asks for permission: in the place of its driver, this test does."""
    task = new_task()
    with serving(root):
        spawn_batch([held(tmp_path / "gate", "a")])
        worker = Root(str(root)).task(task.path.name).worker("a")
        made = ProgramQuestions(worker, str(tmp_path / "home" / ".config" / "agentctl" / "own"))
        options = [("allow", "Yes"), ("allow_always", "Always"), ("deny", "No")]
        made.put(Ask("key", "Allow Bash?", options, tool="Bash", arguments={"command": "rm x"}, means=MEANS))
        yield worker, made
        made.close_all("the test is over")
        (tmp_path / "gate").touch()
        run("wait", "a")


def test_a_message_offers_to_deny_and_never_to_allow(
    permit: tuple[WorkerDir, ProgramQuestions], ntfy: Listener, root: Path
) -> None:
    _, questions = permit
    (post,) = ntfy.told(1)
    assert labels(post) == [("http", "Deny"), ("view", "Open")]
    assert "Allow Bash: rm x?" in json.dumps(post), "the message names the command"
    for answer in ("allow", "allow_always", "Yes", "yes", "Always"):
        with pytest.raises(Refused, match="no link may give this answer to q1 of a"):
            used(root, link_to(root, answer))
    assert list(questions.answered()) == []
    pressed(root, post, "Deny")
    assert [answer for _, answer, _ in questions.answered()] == ["deny"], "it counts as the person's"
    assert questions.take_tampered() == []


def test_a_link_to_a_permission_dies_with_who_asked(permit: tuple[WorkerDir, ProgramQuestions], root: Path) -> None:
    worker, questions = permit
    link = link_to(root, "deny")
    ((_, asked),) = questions._open.values()
    os.close(asked.lock)
    with pytest.raises(Refused, match="nobody waits for the answer"):
        used(root, link)
    questions._open.clear()
    assert not worker.answer("q1").exists()


# -- what a message shows ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    ["Push with ghp_0123456789abcdefABCD?", *alike("Deploy?\nAnd delete all?", "Deploy? " + "x " * 150, "a\u202eb?")],
)
def test_a_question_that_is_not_shown_as_it_is_has_only_a_link(question: str, ntfy: Listener, root: Path) -> None:
    with serving(root), asking(argv=[*CONFIRM[:-1], question]) as task:
        (post,) = ntfy.told(1)
        assert post["click"] == f"{URL}/tasks/t1/workers/a?question=q1"
        assert labels(post) == [("view", "Open")]
        with pytest.raises(Refused, match="no link may give this answer"):
            used(root, link_to(root, "yes"))
        assert answered(task) == []


@pytest.mark.slow
def test_a_question_whose_file_says_something_else_than_the_message_has_only_a_link(ntfy: Listener, root: Path) -> None:
    ntfy.statuses = [500]
    ntfy.may_answer.clear()
    with serving(root), asking() as task:
        assert labels(ntfy.told(1)[0]) == [("http", "Yes"), ("http", "No"), ("view", "Open")]
        rewritten(task, question="Delete all?")
        ntfy.may_answer.set()
        post = ntfy.told(2)[1]  # What could not be told is told again, and the log still has the question as it was.
        assert post["message"] == "a asks: Deploy?"
        assert labels(post) == [("view", "Open")]


def test_a_server_that_answers_nothing_gets_no_buttons(ntfy: Listener, root: Path) -> None:
    with serving(root, read_only=True), asking():
        assert labels(ntfy.told(1)[0]) == [("view", "Open")]


def test_no_target_of_another_type_and_no_other_word_gets_buttons(root: Path, home: Path) -> None:
    for target, problem in (
        ({"type": "webhook", "url": "http://127.0.0.1/x", "buttons": True}, "unknown key 'buttons'"),
        ({"type": "ntfy", "url": "http://127.0.0.1/x", "buttons": "yes"}, "buttons must be true or false"),
    ):
        configure(home, {"phone": target})
        assert problem in run("notify", check=False).err


# -- where the server says that it is ----------------------------------------------------------------------------------


SERVER = """
import sys
from agentctl.adapters.taskdir import Root
from agentctl.adapters.served import RootServer, announce, hold_server
from agentctl.supervision.worker.environment import store_folder
lock = hold_server(store_folder(), Root({root!r}))
announce(store_folder(), Root({root!r}), RootServer({url!r}, {token!r}))
print("ready", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_server_left_makes_no_link(ntfy: Listener, root: Path) -> None:
    script = SERVER.format(root=str(root), url=URL, token=TOKEN)
    argv, pipe = [sys.executable, "-c", script], subprocess.PIPE
    with subprocess.Popen(argv, cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        assert live_server(store_folder(), Root(str(root))) == RootServer(URL, TOKEN)
        server.send_signal(signal.SIGKILL)
    assert json.loads(file_of(root).read_bytes())["url"] == URL
    assert live_server(store_folder(), Root(str(root))) is None
    with asking():
        assert not {"click", "actions"} & ntfy.told(1)[0].keys()


def test_the_address_of_an_earlier_server_is_not_taken_for_the_next_ones(root: Path) -> None:
    from agentctl.adapters.served import hold_server

    with serving(root) as where:
        pass
    lock = hold_server(store_folder(), where)
    assert lock is not None
    assert live_server(store_folder(), where) is None, "it does not listen yet"
    assert kept_token(store_folder(), where) == TOKEN
    os.close(lock)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o640, 0o604])
def test_a_file_that_others_can_read_or_write_makes_no_link(ntfy: Listener, root: Path, mode: int) -> None:
    with serving(root) as where:
        file_of(root).chmod(mode)
        assert live_server(store_folder(), where) is None
        assert kept_token(store_folder(), where) is None
        if mode == 0o602:
            with asking():
                assert not {"click", "actions"} & ntfy.told(1)[0].keys()


def told(**changes: Any) -> bytes:
    return json.dumps({"url": URL, "token": TOKEN, **changes}).encode()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", told(token=""), told(token="short"), told(token=5), told(url="javascript:alert(1)"), told(url=5),
     told(url="http://x/"), told(url="http://x y"), told(url="http://me@x"), told(url="http://x?y"), told(url="http://é"),
     told(url="http://" + "x" * 400), told(more="x" * 10_000), b"\0" * 10_000],
)  # fmt: skip
def test_a_file_that_is_none_of_ours_makes_no_link(root: Path, content: bytes) -> None:
    with serving(root) as where:
        file_of(root).write_bytes(content)
        assert live_server(store_folder(), where) is None


@pytest.mark.parametrize("line", ["mkfifo {0}", "ln -s {0}.other {0}", "mkdir {0}", "ln -s /dev/zero {0}"])
def test_something_else_in_its_place_makes_no_link_and_hangs_nobody(root: Path, line: str) -> None:
    with serving(root) as where:
        file = file_of(root)
        file.rename(f"{file}.other")
        subprocess.run(["sh", "-c", line.format(shlex.quote(str(file)))], check=True)
        assert live_server(store_folder(), where) is None
        announce(store_folder(), where, RootServer(URL, TOKEN))
        assert live_server(store_folder(), where) == RootServer(URL, TOKEN)


@pytest.mark.parametrize(
    "served", [RootServer("", TOKEN), RootServer("ftp://x", TOKEN), RootServer(URL, "short"), RootServer(URL, "é" * 20)]
)
def test_a_server_that_could_be_guessed_or_not_be_reached_is_none(root: Path, served: RootServer) -> None:
    with serving(root) as where, pytest.raises(ValueError, match="an address, and a token"):
        announce(store_folder(), where, served)


def test_the_token_is_private_and_in_no_message(ntfy: Listener, root: Path) -> None:
    with serving(root), asking():
        (post,) = ntfy.told(1)
        assert TOKEN not in json.dumps([post, [dict(one) for one in ntfy.headers]])
        assert file_of(root).stat().st_mode & 0o777 == 0o600
    assert files_with(root, TOKEN) == []

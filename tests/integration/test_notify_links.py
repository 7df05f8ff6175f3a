"""At stake: whoever is told of a question is one tap away from it, and an answer that was tapped reaches its worker."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentctl.adapters.locks import is_alive_held
from agentctl.adapters.served import RootServer, hold_server, kept_token, live_server
from agentctl.adapters.taskdir import Root
from agentctl.adapters.treedir import tree_at
from agentctl.domain.notice.notice_messages import message_about
from agentctl.domain.notice.notices import Notice
from agentctl.domain.notice.targets import NoticeTarget
from agentctl.errors import Refused
from agentctl.supervision.notify.links import with_links
from agentctl.supervision.worker.environment import store_folder
from tests.listener import Listener, configure
from tests.served import TOKEN, URL, labels, pressed, serving
from tests.steps import Task, new_task, spawn
from tests.support import PROGRAM, run, wait_for_json, wait_until, worker

pytestmark = pytest.mark.server

ASK = [*PROGRAM, "interact", "ask"]
CONFIRM = [*ASK, "--kind", "confirm", "Deploy?"]


@pytest.fixture
def ntfy(root: Path) -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()
    task = root / "tasks" / "t1"
    wait_until(lambda: not is_alive_held(task / "sender.json"), what="the sender to leave")


@pytest.fixture
def home(root: Path, tmp_path: Path) -> Path:
    return tmp_path / "home"


def phone(listener: Listener, **more: object) -> dict[str, object]:
    return {"type": "ntfy", "url": listener.url("mine"), "events": ["blocked", "failed"], **more}


def answered(task: Task) -> list[tuple[str, str]]:
    return [(row["payload"]["answer"], row["payload"]["by"]) for row in task.events("interaction.responded")]


def test_a_question_is_answered_by_a_button(ntfy: Listener, home: Path, root: Path) -> None:
    configure(home, {"phone": phone(ntfy, buttons=True)})
    task = new_task()
    with serving(root):
        spawn(CONFIRM, name="a")
        (post,) = ntfy.told(1)
        assert post["message"] == "a asks: Deploy?"
        assert post["click"] == f"{URL}/tasks/t1/workers/a?question=q1"
        assert labels(post) == [("http", "Yes"), ("http", "No"), ("view", "Open")]
        assert post["actions"][2]["url"] == post["click"]
        done = pressed(root, post, "No")
        assert (done["taskId"], done["agentInstance"], done["id"], done["answer"]) == ("t1", "a", "q1", "no")
        task.ended("a")
        assert pressed(root, post, "No") == done  # Its answer may have been lost.
        with pytest.raises(Refused, match="q1 of a was answered already, with 'no' by user"):
            pressed(root, post, "Yes")
    assert (task.agent("a") / "stdout.log").read_text() == "no\n"
    assert answered(task) == [("no", "user")]


@pytest.mark.parametrize(
    ("asked", "told", "answers"),
    [
        ("## Deploy **now**?", "Deploy now?", ["Yes", "No", "Open"]),
        ("Is [this](https://d.org/x) so?", "Is this (d.org) so?", ["Open"]),
    ],
)
def test_a_question_is_told_in_words_and_has_buttons_if_none_is_left_out(
    ntfy: Listener, home: Path, root: Path, asked: str, told: str, answers: list[str]
) -> None:
    configure(home, {"phone": phone(ntfy, buttons=True)})
    task = new_task()
    with serving(root):
        spawn([*CONFIRM[:-1], asked], name="a")
        (post,) = ntfy.told(1)
        assert post["message"] == f"a asks: {told}"
        assert [label for _, label in labels(post)] == answers
        run("interact", "respond", "a", "--id", "q1", "no")
        task.ended("a")


def test_each_option_of_a_short_choice_has_a_button(ntfy: Listener, home: Path, root: Path) -> None:
    configure(home, {"phone": phone(ntfy, buttons=True)})
    task = new_task()
    options = [word for pair in ("m=Main", "d=Develop", "n=Neither") for word in ("--option", pair)]
    with serving(root):
        spawn([*ASK, "--kind", "select", *options, "Which branch?"], name="a")
        (post,) = ntfy.told(1)
        assert labels(post) == [("http", "Main"), ("http", "Develop"), ("http", "Neither")]
        pressed(root, post, "Develop")
        task.ended("a")
    assert answered(task) == [("d", "user")]


def test_every_target_but_a_terminal_gets_the_link_and_none_gets_buttons_unasked(
    ntfy: Listener, home: Path, root: Path, tmp_path: Path
) -> None:
    out = tmp_path / "told.jsonl"
    script = f"import sys; open({str(out)!r}, 'a').write(sys.stdin.read())"
    configure(
        home,
        {
            "phone": phone(ntfy, events=["blocked"]),
            "hook": {"type": "webhook", "url": ntfy.url(), "events": ["failed"]},
            "desk": {"type": "command", "command": [sys.executable, "-c", script], "events": ["ended"]},
        },
    )
    task = new_task()
    with serving(root):
        spawn(CONFIRM, name="a")
        asked = ntfy.told(1)[0]
        assert asked["click"] == f"{URL}/tasks/t1/workers/a?question=q1"
        assert "actions" not in asked
        spawn(worker("exits", 3), name="b")
        failed = ntfy.told(2)[1]
        assert failed["url"] == f"{URL}/tasks/t1/workers/b"
        assert "actions" not in failed
        run("interact", "respond", "a", "--id", "q1", "yes")
        task.ended("a")
        assert wait_for_json(out)["url"] == f"{URL}/tasks/t1"


def test_without_a_server_there_is_no_link(ntfy: Listener, home: Path, root: Path) -> None:
    configure(home, {"phone": phone(ntfy, buttons=True), "hook": {"type": "webhook", "url": ntfy.url()}})
    task = new_task()
    with serving(root):
        pass
    spawn(CONFIRM, name="a")
    posts = ntfy.told(2)
    run("interact", "respond", "a", "--id", "q1", "yes")
    task.ended("a")
    ntfy.told(3)
    for post in posts:
        assert not {"url", "click", "actions"} & post.keys()


# -- which page --------------------------------------------------------------------------------------------------------


TARGET = NoticeTarget("hook", "webhook", url="http://127.0.0.1/")


@pytest.mark.parametrize(
    ("notices", "path"),
    [
        (
            [Notice("below:3", "blocked", "below", "", "", "a", question_id="q-7")],
            "/tasks/below/workers/a?question=q-7",
        ),
        ([Notice("t1:3", "blocked", "t1", "", "", "a")], "/tasks/t1/workers/a"),
        ([Notice("t1:3", "limit", "t1", "", "", "a")], "/tasks/t1/workers/a"),
        ([Notice("below:3:ended", "ended", "t1", "", "")], "/tasks/t1"),
        ([Notice("below:3", "failed", "below", "", "", "a"), Notice("t1:4", "failed", "t1", "", "", "b")], "/tasks/t1"),
    ],
)
def test_a_link_leads_to_what_the_message_is_about(root: Path, notices: list[Notice], path: str) -> None:
    message = message_about(notices, "A task")
    tree = tree_at(root / "tasks" / "t1")
    assert with_links(message, notices, TARGET, tree, store_folder()) == message
    with serving(root):
        linked = with_links(message, notices, TARGET, tree, store_folder())
        assert (linked.url, linked.body["url"]) == (f"{URL}{path}", f"{URL}{path}")
    assert with_links(message, notices, TARGET, tree, store_folder()) == message


# -- the server --------------------------------------------------------------------------------------------------------


def test_a_root_has_one_server_and_the_next_one_keeps_its_token(root: Path, tmp_path: Path) -> None:
    folder, other = store_folder(), Root(str(tmp_path / "other"))
    with serving(root) as here:
        assert live_server(folder, here) == RootServer(URL, TOKEN)
        assert hold_server(folder, here) is None
        assert live_server(folder, other) is None
        assert kept_token(folder, other) is None
        (tmp_path / "link").symlink_to(root)
        assert live_server(folder, Root(str(tmp_path / "link"))) == RootServer(URL, TOKEN), "the same root"
    assert live_server(folder, here) is None
    assert kept_token(folder, here) == TOKEN
    with serving(root, read_only=True):
        assert live_server(folder, here) == RootServer(URL, TOKEN, is_read_only=True)

"""At stake: who waits in the foreground answers there and then, and only what they have seen; no other key is read."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.advice import follow
from tests.agent_steps import agent, agent_world, ends, inside, plays
from tests.shells import AGENTCTL
from tests.steps import Task, new_task, spawn
from tests.support import PROGRAM, run, worker
from tests.tmux import PROMPT, TmuxWindow, needs_tmux, opened

pytestmark = [needs_tmux, pytest.mark.screen]

LATER = "Enter alone leaves it for later"
TWO = ("--option", "x=One", "--option", "y=Two")


class Window(TmuxWindow):
    """A terminal in which agentctl waits."""

    def enter(self, line: str) -> None:
        """Type a line."""
        self.write(line)
        self.press("Enter")

    def waits(self, *args: str, behind: str = "") -> None:
        """Have agentctl wait."""
        line = " ".join([*PROGRAM, *map(shlex.quote, args), behind])
        self.enter(f"clear; before=$(stty -g); {line}; echo code=$? ")

    def last_prompt(self) -> str:
        """Return the last row, if it asks for a line; else nothing."""
        last = self.text().rstrip().rpartition("\n")[2]
        return last if last.startswith(("Enter shows", "answer to")) else ""

    def passes(self, prompt: str) -> None:
        """Wait until another line is asked for."""
        self.until(lambda: self.last_prompt() not in ("", prompt), "the next screen")

    def is_left(self, code: int) -> None:
        """Wait for the end, and check that the terminal is as it was found."""
        self.shows(f"code={code}")
        self.enter('test "$before" = "$(stty -g)" && echo s"am"e')
        self.shows("same")
        assert self.ask("cursor_flag") == "1"


@pytest.fixture
def window(root: Path) -> Iterator[Window]:
    with opened(Window, 80, 24) as found:
        yield found
    run("cancel", "--all", check=False)


def asks(task: Task, name: str, *options: str) -> None:
    """Start a worker that asks, and wait until it is blocked."""
    spawn(worker("asks", *options, f"What does {name} want?"), name=name)
    task.has("agent.blocked", name)


def said(task: Task, name: str) -> str:
    """Return what an ended worker was answered."""
    task.ended(name)
    return (task.agent(name) / "stdout.log").read_text(encoding="utf-8")


def test_the_simplest_session_is_one_command_and_a_digit(root: Path, window: Window) -> None:
    new_task()
    asked = shlex.join(["interact", "ask", *TWO, "What?"])
    window.waits("spawn", "--name", "a", "--wait", "--shell", f'echo "got $({AGENTCTL} {asked})"; exit 3')
    window.shows("a of t1 asks:", "│ What?", "1  One", "2  Two", f"1-2 answers; {LATER}", "answer to a:")
    window.enter("3")
    window.shows("'3' is not an option of this question")
    window.until(lambda: window.text().count("answer to a:") == 2, "a second prompt")
    window.enter("2")
    window.shows("answered q1 of a in t1: y", "a failed (exit_code 3)")
    window.is_left(3)
    assert said(Task(root / "tasks" / "t1"), "a") == "got y\n"


def test_what_an_agent_asks_is_drawn_and_looks_like_no_answer(window: Window) -> None:
    task = new_task()
    text = "## Which *one*?\n\n- `rm -r` [docs](https://docs.example.org/x)\n\n1  One, which is safe"
    spawn(worker("asks", *TWO, text), name="a")
    task.has("agent.blocked", "a")
    window.waits("wait", "a")
    window.shows("| │ Which one?"[2:], "│ • rm -r docs (docs.example.org)", "│ 1  One, which is safe", "1  One")
    assert "##" not in window.text()
    assert "\x1b[1mWhich" in window.text(styled=True)
    window.until(lambda: window.last_prompt() == "answer to a:", "the prompt")
    window.enter("")
    window.press("C-c")
    window.shows("code=130")
    for options, shown, hidden in (
        ([], "| Which one?", "##"),
        (["--plain"], "| ## Which *one*?", "• rm"),
    ):
        window.waits("answer", "a", *options)
        window.shows(shown, "One, which is safe", "x  One", "your answer:")
        assert hidden not in window.text()
        assert [row for row in window.rows() if row.startswith("    1")] == []
        window.press("C-c")
        window.shows("code=")


def test_two_ask_in_turn_and_an_end_goes_above_what_is_being_typed(window: Window, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="c")
    asks(task, "a")
    asks(task, "b", "--kind", "confirm")
    window.waits("wait-all")
    window.shows("What does a want?", "answer to a:")
    window.write("first\nsecond\nthird")
    window.shows("error: an answer here is one line")
    window.until(lambda: window.last_prompt() == "answer to a:", "the prompt once more")
    window.write("Grüße, 日本 x")
    window.shows("answer to a: Grüße, 日本 x")
    (tmp_path / "gate").touch()
    window.shows("c completed")
    rows = window.rows()
    assert rows[rows.index("c completed") + 1] == "answer to a: Grüße, 日本 x"
    window.press("BSpace")
    window.enter("y")
    window.shows("answered q1 of a in t1: Grüße, 日本 y", "What does b want?", "1  Yes", "answer to b:")
    window.enter("no")
    window.shows("answered q1 of b in t1: no", "b completed")
    window.is_left(0)
    assert said(task, "a") == "answer: Grüße, 日本 y\n"


def test_what_is_typed_before_a_question_counts_for_nothing(window: Window, tmp_path: Path) -> None:
    task = new_task()
    line = f"while ! test -e {tmp_path}/gate; do sleep 0.05; done; {AGENTCTL} interact ask {shlex.join(TWO)} 'What?'"
    spawn(["sh", "-c", line], name="a")
    window.waits("wait", "a")
    window.shows("running")
    window.enter("1")
    window.write("1")
    (tmp_path / "gate").touch()
    window.shows("answer to a:")
    assert window.row_of("answer to a:") == "answer to a:"
    assert not task.events("agent.unblocked", "interaction.answered", of="a")
    window.enter("2")
    window.shows("answered q1 of a in t1: y")
    window.is_left(0)


def test_a_question_that_is_answered_elsewhere_goes_and_the_next_one_comes(window: Window) -> None:
    task = new_task()
    asks(task, "a", *TWO)
    asks(task, "b")
    asks(task, "c")
    window.waits("wait-all")
    window.shows("answer to a:")
    window.write("1")
    run("interact", "respond", "a", "--id", "q1", "y")
    window.shows("q1 of a was answered with 'y' by user", "answer to b:")
    assert window.row_of("answer to b:") == "answer to b:"
    run("cancel", "b")
    window.shows("q1 of b is", "answer to c:")
    window.enter("mine")
    window.shows("answered q1 of c in t1: mine")
    window.is_left(7)


@pytest.mark.follows("interfaces/words/worker.respond_command: agentctl answer")
def test_enter_leaves_a_question_for_later_and_the_command_is_told(window: Window) -> None:
    new_task()
    window.resize(200, 24)
    window.waits("spawn", "--name", "b", "--wait", "--", *worker("asks", "What does b want?"))
    window.shows("answer to b:")
    window.press("Enter")
    window.shows("1 question is open, of t1/b (What does b want?): agentctl answer b")
    line = window.row_of("1 question is open").rpartition(": agentctl")[2].partition(" (ANSWER")[0]
    follow(window.text(), f"agentctl{line}", put={"ANSWER": "later"})
    window.shows("b completed")
    window.is_left(0)


def test_ctrl_c_ends_the_wait_and_no_worker(window: Window) -> None:
    task = new_task()
    asks(task, "a")
    window.waits("wait-all")
    window.shows("answer to a:")
    window.write("half")
    window.press("C-c")
    window.shows("interrupted")
    window.is_left(130)
    assert not task.events("interaction.answered", of="a")


def test_a_job_in_the_background_reads_nothing_and_asks_in_the_foreground(window: Window) -> None:
    task = new_task()
    asks(task, "a", *TWO)
    window.enter(f"clear; set -m; {' '.join([*PROGRAM, 'wait', 'a'])} 2>&1 &")
    window.shows("1 question is open")
    window.enter("echo t'y'ped")
    window.enter("jobs")
    window.shows("typed", "Running")
    window.enter("fg")
    window.shows("answer to a:")
    window.press("C-z")
    window.shows("Stopped")
    window.enter("echo a'gai'n")
    window.shows("again")
    window.enter("fg")
    window.until(lambda: window.text().count("answer to a:") == 2, "the question once more")
    window.enter("1")
    window.shows("answered q1 of a in t1: x", "a completed", PROMPT)
    assert said(task, "a") == "answer: x\n"


@pytest.mark.parametrize("behind", ["| cat", "2>&1 | cat", "< /dev/null", "--json"])
def test_nobody_is_asked_where_not_all_is_a_terminal(window: Window, tmp_path: Path, behind: str) -> None:
    task = new_task()
    asks(task, "a")
    window.waits("wait", "a", "--timeout-seconds", "2", behind=behind)
    window.shows("question is open" if "json" not in behind else "code=")
    window.shows("code=")
    assert "answer to" not in window.text()


def test_nobody_is_asked_within_a_worker(window: Window) -> None:
    task = new_task()
    asks(task, "a")
    spawn(worker("sleeps", 60), name="p")
    for name, value in inside(task, "p").items():
        window.enter(f"export {name}={shlex.quote(value)}")
    window.waits("wait", "a", "--timeout-seconds", "2")
    window.shows("question is open")
    window.shows("code=4")
    assert "answer to" not in window.text()


def test_a_dumb_terminal_is_only_given_lines(window: Window, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("exits", 0, "--after-file", tmp_path / "gate"), name="c")
    asks(task, "a")
    window.enter("export TERM=dumb")
    window.waits("wait-all")
    window.shows("answer to a:")
    (tmp_path / "gate").touch()
    window.shows("c completed")
    window.enter("ok")
    window.shows("answered q1 of a in t1: ok")
    window.is_left(0)


def test_who_follows_a_worker_answers_behind_its_output(window: Window) -> None:
    new_task()
    spawn(["sh", "-c", f"echo before; printf half; {AGENTCTL} interact ask 'Which?'; echo behind"], name="a")
    window.waits("watch", "a")
    window.shows("before", "half", "│ Which?", "answer to a:")
    text = window.text()
    assert text.index("half") < text.index("a of t1 asks:")
    assert "needs you" not in text
    window.enter("blue")
    window.shows("answered q1 of a in t1: blue", "behind", "a completed")
    window.is_left(0)


def test_several_options_are_chosen_by_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    agent_world(tmp_path, monkeypatch)
    agent(plays(tmp_path, """
options = [{"label": label, "description": ""} for label in ("red", "green", "blue")]
one = {"question": "Which?", "header": "W", "options": options, "multiSelect": True}
me.ask("AskUserQuestion", {"questions": [one]}, "question")
"""))  # fmt: skip
    with opened(Window, 80, 24) as window:
        window.waits("wait", "a")
        window.shows("several with commas between them", "answer to a:")
        window.enter("1, 3")
        window.is_left(0)
    assert ends()["result"]["finalMessage"] == "red, blue"


ASKS_BASH = "me.ask('Bash', {{'command': {!r}}}, lambda answer: me.answer(answer['behavior']))"


def test_a_call_is_shown_whole_screen_by_screen_and_then_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    agent_world(tmp_path, monkeypatch)
    agent(plays(tmp_path, ASKS_BASH.format("rm -rf first\n" + "true \x1b[31m\n  1  Deny\n" * 20 + "rm -rf last")))
    with opened(Window, 80, 24) as window:
        window.waits("wait", "a")
        window.shows("a of t1 asks for permission:", "rm -rf first", "Enter shows the rest")
        assert "rm -rf last" not in window.text()
        window.enter("allow")
        window.until(lambda: window.text().count("Enter shows the rest") == 2, "the next screen")
        assert "│     1  Deny" in window.text()
        assert "\n  1  Deny" not in window.text()
        assert "\\x1b[31m" in window.text()
        window.press("Enter")
        window.shows("rm -rf last", "1  Allow", LATER, "answer to a:")
        window.enter("1")
        window.is_left(0)
    assert ends()["result"]["finalMessage"] == "allow"


def test_what_is_not_shown_whole_can_only_be_denied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    agent_world(tmp_path, monkeypatch)
    agent(plays(tmp_path, ASKS_BASH.format("true\n" * 500 + "rm -rf last")))
    with opened(Window, 200, 60) as window:
        window.waits("wait", "a")
        window.until(window.last_prompt, "a prompt")
        while (row := window.last_prompt()) != "answer to a:":
            window.press("Enter")
            window.passes(row)
        window.shows("This is not the whole call", "all of it: agentctl interact list --task t1")
        assert "rm -rf last" in follow(window.text(), "agentctl interact list --task t1").out
        window.enter("allow")
        window.shows("this is not the whole call, so it is not allowed from here")
        window.until(lambda: window.text().count("answer to a:") == 2, "the prompt once more")
        window.enter("1")
        window.is_left(0)
    assert ends()["result"]["finalMessage"] == "deny"


def test_an_edit_is_shown_as_a_diff_and_raw_shows_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    agent_world(tmp_path, monkeypatch)
    edit = {"file_path": "f.yaml", "old_string": "a: 1", "new_string": "a: 2"}
    agent(plays(tmp_path, f"me.ask('Edit', {edit!r}, lambda answer: me.answer(answer['behavior']))"))
    with opened(Window, 80, 24) as window:
        window.waits("wait", "a")
        window.shows("  Edit f.yaml", "    │ - a: 1", "    │ + a: 2", "raw shows the arguments", "answer to a:")
        assert "old_string" not in window.text()
        window.enter("raw")
        window.until(lambda: window.text().count("answer to a:") == 2, "a second prompt")
        window.shows("    old_string: a: 1", "    new_string: a: 2", "1  Allow")
        window.enter("1")
        window.is_left(0)
    assert ends()["result"]["finalMessage"] == "allow"

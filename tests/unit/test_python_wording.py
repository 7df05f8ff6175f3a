"""At stake: a Python program is told what it can do itself, and not which option of a command line to use."""

from __future__ import annotations

import traceback

import pytest

from agentctl.errors import COMMANDS, Argument, AtTerminal, Hint, Next, Refused, WithArguments
from agentctl.interfaces.python.wording import _STEPS, for_python, worded


@pytest.mark.parametrize(
    ("hint", "told"),
    [
        (Next("another name"), "choose another name="),
        (Next("another folder"), "choose another cwd="),
        (Next("read result", "a1"), "Task.result('a1')"),
        ((WithArguments(Argument("queue"), " waits"), Next("wait for any", does="waits for the next to end")),
         "queue=True waits; wait_any() waits for the next to end"),
        (("it needs a git repository with a commit", WithArguments("leave ", Argument("reuse"), " out")),
         "it needs a git repository with a commit; leave reuse=True out"),
        (WithArguments("start it in another folder (", Argument("cwd"), "), or: ", Argument("agent", "explore")),
         "start it in another folder (cwd=), or: agent='explore'"),
        ((Next("new", does="starts a task here"), WithArguments("or choose another ", Argument("root"))),
         'Task.create("TITLE") starts a task here; or choose another root='),
        (WithArguments(Argument("root", "/a/b")), "root='/a/b'"),
        (WithArguments(Argument("force"), " uses it all the same"), None),
        ("git commit --allow-empty makes one", "git commit --allow-empty makes one"),
        (AtTerminal("agentctl doctor --fix"), "agentctl doctor --fix"),
        (None, None),
    ],
)  # fmt: skip
def test_the_next_step_is_an_argument_or_a_call(hint: Hint | None, told: str | None) -> None:
    assert worded(Refused("no", hint=hint)) == ("no", told)


def test_every_next_step_that_a_terminal_takes_by_an_option_has_words_of_its_own() -> None:
    assert set(_STEPS) <= set(COMMANDS)
    for step in COMMANDS:
        assert "--" not in str(worded(Refused("no", hint=Next(step, "a1")))[1])


def test_what_somebody_has_written_is_left_alone() -> None:
    assert worded(Refused("there is no program '--name' in PATH"))[0] == "there is no program '--name' in PATH"


def test_a_traceback_shows_the_next_step_once() -> None:
    @for_python()
    def inner() -> None:
        raise Refused(WithArguments(Argument("permissions"), " is not JSON"), hint=Next("another folder"))

    with pytest.raises(Refused) as refused, for_python():
        inner()
    shown = "".join(traceback.format_exception(refused.value))
    assert "Refused: permissions= is not JSON\nhint: choose another cwd=\n" in shown
    assert shown.count("hint:") == 1

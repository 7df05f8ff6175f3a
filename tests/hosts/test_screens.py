"""At stake: the screen of another machine works here, and the terminal is as it was before, however it ends."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator

import psutil
import pytest

from tests.hosts.machines import Machine
from tests.processes import children_of, name_of
from tests.support import PROGRAM, run, wait_until
from tests.tmux import TmuxWindow, needs_tmux, tmux_window

pytestmark = needs_tmux
Both = tuple[Machine, Machine]
AGENTCTL = " ".join(PROGRAM)


@pytest.fixture
def window(both: Both) -> Iterator[TmuxWindow]:
    run("--host", "a", "spawn", "--name", "long", "--", "sleep", "600")
    with tmux_window(100, 24) as found:
        yield found
    both[0].run("cancel", "--all")


def opened(window: TmuxWindow) -> None:
    window.write(f"clear; {AGENTCTL} --host a watch; echo code=$?")
    window.press("Enter")
    window.shows("agentctl  ", "long", "Quit")


def below(window: TmuxWindow, name: str) -> psutil.Process:
    shell = psutil.Process(int(window.ask("pane_pid")))
    return next(one for one in children_of(shell, recursive=True) if name_of(one) == name)


def test_the_screen_is_drawn_follows_the_size_and_is_left(both: Both, window: TmuxWindow) -> None:
    opened(window)
    window.is_whole()
    window.resize(80, 20)
    window.is_whole()
    both[0].run("spawn", "--name", "another", "--", "sleep", "600")
    window.shows("another")
    window.press("q")
    window.is_left(0)
    both[0].is_left_alone()


@pytest.mark.parametrize("victim", ["ssh", "sshd", "term"])
def test_a_screen_that_breaks_leaves_the_terminal_as_it_was(both: Both, window: TmuxWindow, victim: str) -> None:
    opened(window)
    if victim == "ssh":
        below(window, "ssh").kill()
    elif victim == "sshd":
        both[0].kill()
    else:
        shell = psutil.Process(int(window.ask("pane_pid")))
        shell.children()[0].send_signal(signal.SIGTERM)
    window.is_left(143 if victim == "term" else 1)
    window.write("printf %0101d 7")
    window.press("Enter")
    wait_until(lambda: window.text().replace("\n", ""), accept=lambda text: "0" * 100 + "7" in text, what="long lines")
    if victim != "term":
        window.shows("the connection to a broke")
    both[0].is_left_alone()


def test_a_table_is_drawn_with_its_looks_and_ctrl_c_leaves_it(both: Both, window: TmuxWindow) -> None:
    window.write(f"clear; {AGENTCTL} --host a wait-all; echo code=$?")
    window.press("Enter")
    window.shows("0 of 1 ended", "running")
    window.press("C-c")
    window.shows("interrupted", "code=130")
    window.write(f"clear; {AGENTCTL} list --hosts a,b")
    window.press("Enter")
    window.shows("host", "instance", "long")
    assert "\x1b[36mrunning" in window.text(styled=True)
    both[0].is_left_alone()


def test_nothing_of_ssh_is_left(both: Both, window: TmuxWindow) -> None:
    opened(window)
    window.press("q")
    window.is_left(0)
    listed = subprocess.run(["ps", "-e", "-o", "args"], capture_output=True, text=True, check=True).stdout
    assert str(both[0].folder.parent / "keys" / "config") not in listed

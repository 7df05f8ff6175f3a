"""At stake: why an agent failed is the first that is said of it, in words that can be read, whatever its driver is."""

from __future__ import annotations

import pytest

from agentctl.domain.agent.driver_names import PLAIN
from agentctl.domain.states import Reason
from agentctl.drivers.complaints import Complaints
from agentctl.drivers.order import Order
from agentctl.drivers.registry import AGENT_DRIVERS, load

WROTE = [
    b"Traceback (most recent call last):",
    b"connecting 1 %\rconnecting 99 %\r",
    b'  File "x.py", line 3, in <module>',
    b"\x1b[1;31mpsycopg2.OperationalError\x1b[0m: no   route to \x1b[4mhost\x1b[m",
    b"    ^^^^",
    b"",
]
LAST = "psycopg2.OperationalError: no route to host"
DRIVERS = list(AGENT_DRIVERS)


@pytest.mark.parametrize("code", [1, 127, 143, -9])
@pytest.mark.parametrize("name", DRIVERS)
def test_the_last_line_stands_before_how_the_program_ended(name: str, code: int) -> None:
    dialogue = load(name).dialogue(Order(driver=name, program=name, agent="general", prompt="do it"))
    dialogue.begin()
    for line in WROTE:
        dialogue.complained(line)
    message = str(dialogue.ended(code).message)
    assert message.startswith(f"{LAST}; ")
    assert str(-code if code < 0 else 15 if code == 143 else code) in message


@pytest.mark.parametrize("name", [name for name in DRIVERS if name != PLAIN])
def test_a_refused_login_is_told_by_the_line_that_says_it(name: str) -> None:
    dialogue = load(name).dialogue(Order(driver=name, program=name, agent="general", prompt="do it"))
    dialogue.begin()
    for line in (b"\x1b[31mError:\x1b[m not logged in", b"see the log"):
        dialogue.complained(line)
    outcome = dialogue.ended(1)
    assert (outcome.reason, outcome.message) == (Reason.AUTH, "Error: not logged in")


@pytest.mark.parametrize("name", [name for name in DRIVERS if name != PLAIN])
def test_one_that_wrote_nothing_to_stderr_is_told_by_what_it_said_beside_its_protocol(name: str) -> None:
    def said(*stderr: bytes) -> str:
        dialogue = load(name).dialogue(Order(driver=name, program=name, agent="general", prompt="do it"))
        dialogue.begin()
        for line in (b"usage: it has no such argument\n", b"\x1b[31mno such argument: --acp\x1b[m\n"):
            dialogue.received(line)
        for line in stderr:
            dialogue.complained(line)
        return str(dialogue.ended(2).message)

    assert said().startswith("no such argument: --acp; ")
    assert said(b"out of luck").startswith("out of luck; ")


def test_an_error_behind_a_long_bar_is_told_and_so_is_the_beginning_of_a_long_line() -> None:
    bar = b"".join(b"\rloading [%-20s] %d %%" % (b"#" * (done // 5), done) for done in range(101)) * 2
    said = Complaints()
    said.keep(bar + b"\r\x1b[Knot logged in")
    assert said.explain("it ended") == "not logged in; it ended"
    said.keep(b"no such model " + b"x" * 9000)
    assert said.has_any(["no such model"])

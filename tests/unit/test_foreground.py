"""At stake: a command that a model runs in the foreground ends before its shell's limit, and says what to do next."""

from __future__ import annotations

import pytest

from agentctl.errors import ExitCode, WaitTimedOut
from agentctl.interfaces.commands.parts.foreground import FOREGROUND_S, VARIABLE, in_foreground


@pytest.mark.parametrize(
    ("inside", "given_s", "limit_s"),
    [(False, None, None), (False, 5.0, 5.0), (True, None, FOREGROUND_S), (True, 5.0, 5.0), (True, 86400.0, 86400.0)],
)
def test_the_limit_is_that_of_the_caller_else_of_the_shell(
    inside: bool, given_s: float | None, limit_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if inside:
        monkeypatch.setenv(VARIABLE, "1")
    with in_foreground(given_s) as found:
        assert found == limit_s


def test_its_end_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    with pytest.raises(WaitTimedOut) as raised, in_foreground(None):
        raise WaitTimedOut("nothing ended within 90 s", hint="wait again")
    assert raised.value.exit_code == ExitCode.TIMED_OUT
    assert "agentctl wait-any --timeout-seconds" in str(raised.value.hint)

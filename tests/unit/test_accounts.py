"""At stake: agent programs report usage windows and may report anything; no worker waits that need not."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.adapters.clock import iso_of
from agentctl.adapters.paths import FilePath
from agentctl.domain.states import Reason
from agentctl.domain.tree.windows import LONGEST_S, Window, merged, plausible, window_from
from agentctl.drivers.claude.account import claude_account, claude_windows
from agentctl.drivers.codex.account import codex_account, codex_windows, rejected
from agentctl.drivers.codex.dialogue import CodexDialogue
from agentctl.drivers.dialogue import Finished, UsageReported
from agentctl.drivers.order import Order
from agentctl.supervision.account import accounts, holds
from agentctl.supervision.account.accounts import Account
from agentctl.supervision.account.holds import Hold
from tests.claude_lines import feed, outcomes, recorded, started
from tests.support import REPOSITORY

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=10,
)
KEYS = (
    "status", "resetsAt", "rateLimitType", "unifiedWindows", "utilization", "five_hour", "rateLimits", "limitId",
    "primary", "secondary", "usedPercent", "windowDurationMins",
)  # fmt: skip
LIKE_IT = st.recursive(ANYTHING, lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=6), max_leaves=10)
NOW = 1_800_000_000.0


def hold_after(folder: Path, windows: list[Window]) -> float:
    account = Account("claude-1", FilePath(str(folder)))
    holds.tell(account, windows)
    hold = holds.held_now(account)
    return hold.left_s if hold is not None else 0.0


@given(LIKE_IT)
def test_whatever_is_told_no_driver_breaks_and_no_hold_is_longer_than_a_week_and_a_bit(told: Any) -> None:
    windows = [*claude_windows({"rate_limit_info": told}), *rejected(codex_windows({"rateLimits": told}))]
    for window in plausible(windows, NOW):
        assert window.used_percent is None or 0 <= window.used_percent <= 100
        assert window.resets_at is None or abs(window.resets_at - NOW) <= LONGEST_S
    json.dumps([window.to_json() for window in windows], allow_nan=False)


@given(ANYTHING)
def test_whatever_stands_in_the_file_of_an_account_nobody_waits_long(tmp_path_factory: Any, told: Any) -> None:
    folder = tmp_path_factory.mktemp("accounts")
    for value in (told, {"windows": told}, {"windows": [told]}, {"backOff": told}):
        (folder / "claude-1.json").write_text(json.dumps(value), encoding="utf-8")
        (account,) = accounts.all_accounts(FilePath(str(folder)))
        hold = holds.held_now(account, any_model=True)
        assert hold is None or hold.left_s <= LONGEST_S
        holds.windows_of(account)


@pytest.mark.parametrize("at", [253402300800, -5, 0, float("nan"), float("inf"), "soon", None, True, 10**400])
def test_a_reset_that_cannot_be_holds_nobody(tmp_path: Path, at: Any) -> None:
    window = window_from("five_hour", 100, at, is_rejected=True)
    assert window is not None
    assert hold_after(tmp_path, [window]) == 0


def test_a_window_is_kept_until_it_is_reset_or_told_anew(tmp_path: Path) -> None:
    soon = time.time() + 900
    assert hold_after(tmp_path, [Window("five_hour", 100, soon, is_rejected=True)]) == pytest.approx(900, abs=5)
    # An answer to an earlier request may arrive late: it says that the window is open, and an older share of use.
    for used in (100, 80, 60, None):
        assert hold_after(tmp_path, [Window("five_hour", used, soon)]) == pytest.approx(900, abs=5)
    # A report about the previous window may arrive late too.
    assert hold_after(tmp_path, [Window("five_hour", 99, soon - 18_000)]) == pytest.approx(900, abs=5)
    # The window was reset early.
    assert hold_after(tmp_path, [Window("five_hour", 3, soon)]) == 0
    assert hold_after(tmp_path, [Window("five_hour", 100, soon, is_rejected=True)]) > 0
    later = soon + 600
    assert hold_after(tmp_path, [Window("five_hour", 100, later, is_rejected=True)]) == pytest.approx(1500, abs=5)
    assert hold_after(tmp_path, [Window("seven_day", 20, later + 9000)]) == pytest.approx(1500, abs=5)


def test_many_windows_are_not_kept() -> None:
    known = merged([], [Window(f"{number}_minutes", 1) for number in range(1, 100)])
    assert len(known) <= 16


def test_the_window_of_a_model_holds_those_that_use_it(tmp_path: Path) -> None:
    folder = FilePath(str(tmp_path))
    holds.tell(Account("claude-1", folder), [Window("seven_day_opus", 100, time.time() + 900, is_rejected=True)])
    held = {model: holds.held_now(Account("claude-1", folder, model)) for model in ("claude-opus-5", "sonnet", None)}
    assert [model for model, hold in held.items() if hold is not None] == ["claude-opus-5"]


def test_a_recorded_claude_tells_the_window_that_stops_it_before_its_end() -> None:
    actions = feed(started(), recorded("window"))
    told = [action.windows for action in actions if isinstance(action, UsageReported)]
    assert [[window.is_rejected for window in windows] for windows in told] == [[False, False], [True, False]]
    assert [window.name for window in told[-1]] == ["five_hour", "seven_day"]
    (outcome,) = outcomes(actions)
    assert outcome.reason is Reason.RATE_LIMITED
    assert actions.index(UsageReported(told[-1])) < actions.index(Finished(outcome))


def test_a_recorded_codex_tells_the_window_that_stops_it_before_its_end() -> None:
    file = REPOSITORY / "tests/recordings/codex/app-server-window.jsonl"
    lines = [json.loads(line)["msg"] for line in file.read_text(encoding="utf-8").splitlines()]
    dialogue = CodexDialogue(Order(driver="codex", program="codex", agent="general", prompt="SCENARIO:tool"))
    dialogue.begin()
    actions = [action for line in lines for action in dialogue.received(json.dumps(line).encode())]
    told = [action.windows for action in actions if isinstance(action, UsageReported)]
    assert [window.name for window in told[0]] == ["five_hour", "seven_day"]
    assert [(window.name, window.is_rejected) for window in told[-1]] == [("five_hour", True)]
    assert not any(window.is_rejected for windows in told[:-1] for window in windows)
    (end,) = [action.outcome for action in actions if isinstance(action, Finished)]
    assert end.reason is Reason.RATE_LIMITED


def test_windows_that_money_opens_stop_nobody() -> None:
    used_up = {"utilization": 1, "resetsAt": NOW, "status": "rejected"}
    info = {"status": "allowed", "isUsingOverage": True, "unifiedWindows": {"five_hour": used_up}}
    assert [window.is_rejected for window in claude_windows({"rate_limit_info": info})] == [False]


# -- whose account it is -----------------------------------------------------------------------------------------------


def reads(**files: str) -> Any:
    return lambda path: files.get(path.rsplit("/", 1)[-1].replace(".", "_").strip("_"), "").encode()


OWN = 'model_provider = "own"\n[model_providers.own]\nbase_url = "http://x"\nenv_key = "MY_KEY"\n'


def test_another_key_of_the_providers_own_is_another_account_of_codex() -> None:
    read = reads(config_toml=OWN)
    one, other = ({"MY_KEY": key, "HOME": "/h"} for key in "12")
    assert codex_account(one, read) != codex_account(other, read)
    assert codex_account(one, read) == codex_account({**one, "OPENAI_API_KEY": "of something else"}, read)
    profile = 'profile = "p"\n[profiles.p]\nmodel_provider = "own"\n[model_providers.own]\nenv_key = "MY_KEY"\n'
    assert codex_account(one, reads(config_toml=profile))[-1] == "1"


@pytest.mark.parametrize("config", ["", "not toml [", "model_provider = 5", "[model_providers]\nown = 3"])
def test_without_a_key_of_its_own_the_login_decides(config: str) -> None:
    one, other = (reads(config_toml=config, auth_json=f'{{"tokens": {{"account_id": "{name}"}}}}') for name in "ab")
    assert codex_account({"HOME": "/h"}, one) != codex_account({"HOME": "/h"}, other)
    assert codex_account({"HOME": "/h"}, one) != codex_account({"HOME": "/h", "OPENAI_API_KEY": "k"}, one)


def test_who_logs_in_anew_is_another_account_of_claude_but_for_a_key() -> None:
    one, other = (reads(claude_json=f'{{"oauthAccount":{{"accountUuid": "{name}"}}}}') for name in "ab")
    assert claude_account({"HOME": "/h"}, one) != claude_account({"HOME": "/h"}, other)
    key = {"HOME": "/h", "ANTHROPIC_API_KEY": "k"}
    assert claude_account(key, one) == claude_account(key, other)


@pytest.mark.parametrize("drift", [-0.6, 0.0, 0.6])
def test_the_time_that_is_shown_is_the_same_at_each_look(drift: float) -> None:
    """Two clocks are read one after the other and may drift apart a little; a clock that was set counts as it is."""
    ends_at = time.time() + 600
    hold = Hold("claude-1", ends_at + drift - time.time(), 0, "five_hour", ends_at)
    assert hold.until == iso_of(round(ends_at))
    assert hold._replace(left_s=60).until == iso_of(round(time.time() + 60))

"""At stake: a program in another mode than the one that was ordered does nothing, or is stopped."""

from __future__ import annotations

from typing import Any

import pytest

from agentctl.domain.agent.permissions import parse_policy
from agentctl.domain.states import Reason
from agentctl.drivers.acp.program import AcpProgram, Manner
from agentctl.drivers.dialogue import Ask, StopProgram
from agentctl.drivers.order import OWN_PERMISSIONS
from tests.unit.test_acp_driver import SESSION, Talk, order

ASKS = AcpProgram(program="agent", asking=Manner(mode="ask", modes=("plan",)), allowing=Manner(mode="all"))
READS = AcpProgram(program="agent", read_only=Manner(mode="plan"))
UNTOLD = AcpProgram(program="agent", asking=Manner())
BY_ARGUMENTS = AcpProgram(program="agent", asking=Manner(args=("--ask",), modes=("ask",)))
NAMES = {"ask": "Ask first", "plan": "Plan", "auto": "Auto", "all": "Everything"}


def modes(current: str) -> dict[str, Any]:
    return {"currentModeId": current, "availableModes": [{"id": one, "name": name} for one, name in NAMES.items()]}


def options(current: str) -> list[dict[str, Any]]:
    values = [{"value": one, "name": name} for one, name in NAMES.items()]
    choice = {"id": "m", "name": "Mode", "category": "mode", "type": "select", "currentValue": current}
    return [{**choice, "options": values}]


def under(row: AcpProgram, policy: str, **more: Any) -> Talk:
    return Talk(order(row, permissions=parse_policy(policy), **more))


def ended(talk: Talk, reason: Reason, *words: str) -> None:
    assert talk.outcome.reason is reason, talk.outcome
    for word in words:
        assert word in str(talk.outcome.message)


def is_working(talk: Talk) -> bool:
    return talk.methods[-1] == "session/prompt" and not talk.of(StopProgram)


@pytest.mark.parametrize("policy", ["ask", "deny"])
@pytest.mark.parametrize("resume", [None, "old"])
def test_a_mode_that_nobody_ordered_is_an_end_before_the_first_prompt(policy: str, resume: str | None) -> None:
    for row, words in ((UNTOLD, "about which its row says nothing"), (BY_ARGUMENTS, "but ask was ordered")):
        talk = under(row, policy, resume=resume).opened({"loadSession": True}, modes=modes("auto"))
        ended(talk, Reason.NOT_STARTED, "in the mode auto", words, OWN_PERMISSIONS, "acp.yaml")
        assert "session/prompt" not in talk.methods


@pytest.mark.parametrize("told", [{}, {"modes": modes("ask")}, {"configOptions": options("plan")}])
def test_a_mode_that_its_row_knows_may_be_and_so_may_none(told: dict[str, Any]) -> None:
    row = BY_ARGUMENTS._replace(asking=Manner(args=("--ask",), modes=("ask", "plan")))
    assert is_working(under(row, "deny").opened(**told))


def test_a_mode_that_it_says_it_took_and_did_not_take_is_an_end() -> None:
    talk = under(ASKS, "ask").opened(configOptions=options("auto"))
    assert talk.methods[-1] == "session/set_config_option"
    talk.result(configOptions=options("auto"))
    ended(talk, Reason.NOT_STARTED, "in the mode auto", "but ask or plan was ordered")


def test_a_mode_that_it_took_is_believed_where_it_does_not_tell_it_once_more() -> None:
    talk = under(ASKS, "ask").opened(modes=modes("auto"))
    talk.update("current_mode_update", currentModeId="auto")
    assert talk.methods[-1] == "session/set_mode"
    talk.result()
    assert is_working(talk)


def test_a_mode_that_it_tells_before_the_first_prompt_is_looked_at_there() -> None:
    talk = under(ASKS, "ask", model="b").opened(
        modes=modes("ask"), models={"currentModelId": "a", "availableModels": [{"modelId": "b", "name": "B"}]}
    )
    talk.update("current_mode_update", currentModeId="auto")
    talk.result()
    ended(talk, Reason.NOT_STARTED, "in the mode auto")


def test_a_mode_that_it_only_passes_through_before_the_first_prompt_stops_nothing() -> None:
    talk = under(ASKS, "ask", model="b").opened(
        modes=modes("ask"), models={"currentModelId": "a", "availableModels": [{"modelId": "b", "name": "B"}]}
    )
    for mode in ("auto", "ask"):
        talk.update("current_mode_update", currentModeId=mode)
    talk.result()
    assert is_working(talk)


@pytest.mark.parametrize("update", [{"currentModeId": "auto"}, {"configOptions": options("auto")}])
@pytest.mark.parametrize("session", [SESSION, "one of a sub-agent"])
def test_another_mode_that_it_tells_later_stops_it(update: dict[str, Any], session: str) -> None:
    talk = under(ASKS, "deny").opened(modes=modes("ask"))
    kind = "current_mode_update" if "currentModeId" in update else "config_option_update"
    talk.update(kind, currentModeId="plan") if kind == "current_mode_update" else None
    assert is_working(talk)
    talk.update(kind, session, **update)
    ended(talk, Reason.PERMISSION_DENIED, "in the mode auto", "ask or plan", "so it was stopped", OWN_PERMISSIONS)


def test_an_agent_that_may_only_read_is_not_told_to_let_its_settings_decide() -> None:
    talk = under(READS, "allow", read_only=True).opened(modes=modes("plan"))
    assert is_working(talk)
    talk.update("current_mode_update", currentModeId="ask")
    ended(talk, Reason.PERMISSION_DENIED, "in the mode ask", "but plan was ordered")
    assert OWN_PERMISSIONS not in str(talk.outcome.message)


def test_what_was_said_before_in_a_session_that_is_continued_is_no_mode_of_now() -> None:
    talk = under(ASKS, "ask", resume="old")
    talk.result(protocolVersion=1, agentCapabilities={"loadSession": True})
    talk.update("current_mode_update", currentModeId="auto")
    talk.result(modes=modes("ask"))
    assert is_working(talk)


def test_where_all_is_allowed_the_ordered_mode_is_looked_at_once() -> None:
    talk = under(ASKS, "allow").opened(configOptions=options("all"))
    talk.update("current_mode_update", currentModeId="plan")
    assert is_working(talk)
    talk = under(ASKS, "allow").opened(configOptions=options("ask"))
    talk.result(configOptions=options("auto"))
    ended(talk, Reason.NOT_STARTED, "but all was ordered")


def test_where_ones_own_settings_decide_every_mode_is_theirs() -> None:
    talk = under(ASKS, "own").opened(modes=modes("auto"))
    talk.update("current_mode_update", currentModeId="all")
    assert is_working(talk)
    assert "session/set_mode" not in talk.methods


def test_a_mode_may_be_ordered_by_its_name() -> None:
    row = AcpProgram(program="agent", asking=Manner(mode="Ask first"))
    assert is_working(under(row, "ask").opened(modes=modes("ask")))


@pytest.mark.parametrize(("policy", "offered"), [("ask", ["allow", "deny"]), ("own", ["allow", "allow-2", "deny"])])
def test_an_answer_that_would_lead_to_another_mode_is_not_offered(policy: str, offered: list[str]) -> None:
    """As `ExitPlanMode` has them: yes and ask, yes and ask no more, no and go on planning."""
    talk = under(ASKS, policy).opened(modes=modes("ask"))
    talk.hear(
        {
            "id": 7, "method": "session/request_permission",
            "params": {
                "sessionId": SESSION, "toolCall": {"toolCallId": "c", "title": "a plan"},
                "options": [
                    {"optionId": "ask", "name": "Yes", "kind": "allow_once"},
                    {"optionId": "auto", "name": "Yes, all", "kind": "allow_once"},
                    {"optionId": "plan", "name": "No", "kind": "reject_once"},
                ],
            },
        }
    )  # fmt: skip
    assert [name for name, _ in talk.of(Ask)[-1].options] == offered

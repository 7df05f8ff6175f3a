"""At stake: an escalation always ends, and enters each stage once, in order, for its grace period and no longer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.worker.escalation import KILL_LIMIT_S, Escalation, Stage, advance, begin, hurried, whole_limit_s

# Whole numbers make the sums exact, so a due time is certainly reached or not.
GRACE = st.integers(0, 300).map(float)
STEPS = st.lists(st.integers(0, 100).map(float), min_size=1, max_size=30)


def walk(step: Escalation, now: float, pauses: list[float]) -> list[tuple[float, Stage]]:
    """Return the instants at which a stage is entered, if the escalation is advanced after each of `pauses`."""
    entered = []
    for pause in pauses:
        now += pause
        after = advance(step, now)
        if after.stage is not step.stage:
            entered.append((now, after.stage))
        step = after
    return entered


@given(GRACE, STEPS)
def test_stages_come_in_order_and_none_is_left_out(grace_s: float, pauses: list[float]) -> None:
    stages = [stage for _, stage in walk(begin(0, grace_s), 0, pauses)]
    assert stages == [Stage.TERMINATE, Stage.KILL, Stage.SURVIVORS][: len(stages)]


@given(GRACE, STEPS)
def test_nobody_is_signalled_before_the_grace_period_is_over(grace_s: float, pauses: list[float]) -> None:
    previous = 0.0
    for at, stage in walk(begin(0, grace_s), 0, pauses):
        assert at - previous >= (grace_s if stage <= Stage.KILL else KILL_LIMIT_S)
        previous = at


@given(GRACE, st.integers(0, 10**6).map(float))
def test_one_who_looks_at_each_due_time_is_done_within_the_whole_limit(grace_s: float, began: float) -> None:
    step, looks = begin(began, grace_s), 0
    now = began
    while step.stage is not Stage.SURVIVORS:
        now, looks = step.due, looks + 1
        step = advance(step, now)
    assert looks == 3
    assert now - began == whole_limit_s(grace_s)


@given(GRACE, st.integers(0, 10**9).map(float))
def test_survivors_are_the_end_of_it(grace_s: float, now: float) -> None:
    last = Escalation(Stage.SURVIVORS, 0, grace_s)
    assert advance(last, now) is last


@given(GRACE)
def test_a_sweep_begins_at_sigterm(grace_s: float) -> None:
    step = begin(0, grace_s, Stage.TERMINATE)
    assert step.stage is Stage.TERMINATE
    assert advance(step, step.due).stage is Stage.KILL


@given(GRACE, GRACE, STEPS, st.integers(0, 20))
def test_who_is_hurried_is_no_later_at_any_stage_and_skips_none(
    grace_s: float, asked: float, pauses: list[float], at: int
) -> None:
    step, now, plain = begin(0, grace_s), sum(pauses[:at]), begin(0, grace_s)
    for number, pause in enumerate(pauses):
        before = sum(pauses[:number])
        if number == at:
            step = hurried(step, now, asked)
        step, plain = advance(step, before + pause), advance(plain, before + pause)
        assert step.stage >= plain.stage
        assert step.grace_s <= grace_s


@given(GRACE, GRACE, st.sampled_from([Stage.KILL, Stage.SURVIVORS]))
def test_nothing_hurries_a_kill_that_was_sent(grace_s: float, asked: float, stage: Stage) -> None:
    step = begin(0, grace_s, stage)
    assert hurried(step, 0, asked).due == step.due

"""At stake: an end that another host waits for counts as given once it was printed there, whatever comes between."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.state_tables import offer_state
from agentctl.domain.state_tables.offer_state import Followed, OfferNews, OfferState, OfferStep, offer_after

STORY = st.lists(st.sampled_from(OfferNews), max_size=30)


def followed(story: list[OfferNews]) -> list[Followed]:
    """Return what follows from each of the news, one after the other."""
    found = [Followed(OfferState.NONE)]
    for news in story:
        found.append(offer_after(found[-1].state, news))
    return found[1:]


@given(STORY)
def test_only_what_was_asked_for_and_is_printed_counts_as_given(story: list[OfferNews]) -> None:
    asked = False
    for news, (_, step) in zip(story, followed(story), strict=True):
        asked = asked or step is OfferStep.ASK
        assert step is not OfferStep.YES or (asked and news is OfferNews.PRINTED)
        asked = asked and step is not OfferStep.YES


@given(STORY)
def test_a_refusal_is_for_good_and_told_once(story: list[OfferNews]) -> None:
    found = followed(story)
    for before, now in itertools.pairwise(found):
        assert before.state is not OfferState.DECLINED or now.state is OfferState.DECLINED
    steps = [step for _, step in found]
    assert steps.count(OfferStep.NO) == (OfferNews.REFUSED in story)
    assert OfferStep.YES not in steps[steps.index(OfferStep.NO) :] if OfferStep.NO in steps else True


@given(STORY)
def test_a_command_that_has_asked_is_never_left_waiting_for_a_reader_that_is_gone(story: list[OfferNews]) -> None:
    state = followed([*story, OfferNews.ASKED])[-1].state
    assert offer_after(state, OfferNews.CLOSED).step is OfferStep.HANG_UP


@pytest.mark.parametrize("state", OfferState)
@pytest.mark.parametrize("news", OfferNews)
def test_the_picture_of_the_table_is_the_table(state: OfferState, news: OfferNews) -> None:
    rows = re.findall(r"^ {4}(\w+) +\|(.*)$", offer_state.__doc__ or "", re.MULTILINE)
    cells = {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}
    name, _, step = cells[news.name][list(OfferState).index(state)].partition(", ")
    expected = Followed(OfferState[name], OfferStep(step)) if name else Followed(state)
    assert offer_after(state, news) == expected

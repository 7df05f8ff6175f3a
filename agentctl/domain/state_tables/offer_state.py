"""The states of what a command on another host gives out, as one table: what happens, which state follows, what to do.

    what happens | NONE             | OFFERED          | DECLINED
    -------------|------------------|------------------|---------
    ASKED        | OFFERED, ask     | OFFERED, ask     |
    PRINTED      |                  | NONE, yes        |
    REFUSED      | DECLINED, no     | DECLINED, no     |
    CLOSED       |                  | NONE, hang up    | DECLINED, hang up

An empty cell changes nothing. An end counts as given only after a `yes`, and a refusal is for good: so nothing counts
as given that was not printed.
"""

from __future__ import annotations

from enum import Enum

from agentctl.lean import NamedTuple


class OfferState(Enum):
    """Whether a command waits to hear that what it has printed has arrived."""

    NONE = "none"
    #: It has asked, and there is no answer yet.
    OFFERED = "offered"
    #: Nothing that it prints will be printed on the other side.
    DECLINED = "declined"


class OfferNews(Enum):
    """What can happen to an offer."""

    #: The command asks whether all that it has printed has arrived.
    ASKED = "asked"
    #: The other side has printed it.
    PRINTED = "printed"
    #: The other side will not print it.
    REFUSED = "refused"
    #: Nobody on the other side reads what the command prints.
    CLOSED = "closed"


class OfferStep(Enum):
    """What is to be done."""

    #: Ask the other side.
    ASK = "ask"
    #: Answer the command.
    YES = "yes"
    NO = "no"
    #: Give the command no answer any more: nobody knows.
    HANG_UP = "hang up"


class Followed(NamedTuple):
    """The state that follows, and what is to be done."""

    state: OfferState
    step: OfferStep | None = None


def offer_after(state: OfferState, news: OfferNews) -> Followed:
    """Return what follows when something happens.

    >>> state, step = offer_after(OfferState.NONE, OfferNews.ASKED)
    >>> state.value, step.value, offer_after(state, OfferNews.PRINTED).step.value
    ('offered', 'ask', 'yes')
    >>> offer_after(OfferState.DECLINED, OfferNews.PRINTED).step
    """
    return _TABLE[state].get(news, Followed(state))


_REFUSE = {OfferNews.REFUSED: Followed(OfferState.DECLINED, OfferStep.NO)}
_ASK = {OfferNews.ASKED: Followed(OfferState.OFFERED, OfferStep.ASK)}
_TABLE: dict[OfferState, dict[OfferNews, Followed]] = {
    OfferState.NONE: {**_ASK, **_REFUSE},
    OfferState.OFFERED: {
        **_ASK, OfferNews.PRINTED: Followed(OfferState.NONE, OfferStep.YES), **_REFUSE,
        OfferNews.CLOSED: Followed(OfferState.NONE, OfferStep.HANG_UP),
    },
    OfferState.DECLINED: {OfferNews.CLOSED: Followed(OfferState.DECLINED, OfferStep.HANG_UP)},
}  # fmt: skip

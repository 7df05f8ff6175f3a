"""Links that give one answer to one question: signed, bound to that question as it was, and of limited life.

Whoever has such a link can give that answer, once and without a login: a person presses a button of a message. So a
message offers only what it shows whole, a link is worth no more than its answer, and no link allows what an agent asks
permission for.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Sequence

from agentctl.domain.markdown.markdown_words import are_all_words
from agentctl.domain.names import is_name
from agentctl.domain.notice.notice_text import clean, clean_question
from agentctl.domain.question import AnswerOption, Question, ShownQuestion, offered
from agentctl.errors import Next, Refused
from agentctl.lean import NamedTuple

#: How long a link counts after it was sent.
LIFETIME_S = 12 * 3600
#: A message has no more buttons; one that only opens the question is among them.
MOST_BUTTONS = 3
OPEN_LABEL, DENY_LABEL = "Open", "Deny"
_PURPOSE = b"agentctl answer links v1"
#: A shorter one could be guessed.
SHORTEST_TOKEN = 16
_LONGEST_LABEL, _LONGEST_ANSWER = 30, 64
#: Longer than any link of ours; also before it is known whose it is.
_LONGEST = 2048
_NEXT = Next("look at questions")
_TO_URL, _TO_BYTES = str.maketrans("+/", "-_"), str.maketrans("-_", "+/")
#: An agent's option may not be taken for one of ours.
_OURS = frozenset({OPEN_LABEL.casefold(), DENY_LABEL.casefold()})


class AnswerLink(NamedTuple):
    """What a link says."""

    task: str
    instance: str
    question: str
    answer: str
    #: Of the question as it was when the link was made; see `question_digest`.
    digest: str
    #: Seconds since 1970.
    expires: int


class Button(NamedTuple):
    """An answer that a message may offer."""

    label: str
    answer: str


# -- which answers -----------------------------------------------------------------------------------------------------


def buttons_for(question: Question) -> tuple[Button, ...]:
    """Return the answers that a message may offer which shows the text of a question; none where it may not.

    All that is answered must be in the message: the whole text, in one line and unaltered but for marks of Markdown
    that can be nothing else, and each option. A call is never in it, so of a request for permission only the denial is
    offered.

    >>> def answers(text):
    ...     return [one.answer for one in buttons_for(Question("q1", "confirm", text))]
    >>> answers("Deploy **now**?"), answers("Deploy [this](https://d.org/x)?")
    (['yes', 'no'], [])
    """
    asked = question.text
    if not asked or clean(asked, len(asked)) != asked or question.multiple or question.idle:
        return ()
    if not are_all_words(asked, text_in_message(question)):
        return ()
    seen = ShownQuestion(asked, "", is_whole=not question.is_permission, longest_label=_LONGEST_LABEL)
    options = offered(question, seen)
    return _denial(options) if question.is_permission else _choices(options)


def text_in_message(question: Question) -> str:
    """Return the text of a question as a message has it that shows the whole."""
    return clean_question(question.text, len(question.text), is_permission=question.is_permission)


def _denial(options: Sequence[AnswerOption]) -> tuple[Button, ...]:
    ids = [one.id for one in options]
    denying = [id_ for id_ in ids if ids.count(id_) == 1 and _is_short(id_)]
    return (Button(DENY_LABEL, denying[0]),) if denying else ()


def _choices(options: Sequence[AnswerOption]) -> tuple[Button, ...]:
    found = tuple(Button(one.label, one.id) for one in options)
    labels = {one.label.casefold() for one in found}
    are_fit = all(_is_shown(one.label) and _is_short(one.answer) for one in found)
    are_distinct = len(labels) == len({one.answer for one in found}) == len(found) and not labels & _OURS
    return found if len(found) <= MOST_BUTTONS and are_fit and are_distinct else ()


def _is_shown(label: str) -> bool:
    """Return whether a button shows the whole of a label, as it is."""
    return bool(label) and clean(label, _LONGEST_LABEL) == label


def _is_short(answer: str) -> bool:
    return 0 < len(answer) <= _LONGEST_ANSWER


# -- signed ------------------------------------------------------------------------------------------------------------


def question_digest(question: Question) -> str:
    """Return a digest of all of a question that can be answered or shown."""
    from hashlib import sha256  # It loads OpenSSL, as `hmac` does: only for links.

    canonical = json.dumps(question.to_json(), sort_keys=True, separators=(",", ":"))
    return _text(sha256(canonical.encode()).digest())


def sign(link: AnswerLink, token: str) -> str:
    """Return a link as the text `PAYLOAD.SIGNATURE`, which is fit for a URL.

    Args:
        token: Of the server that is to carry it out; links end with it.

    Raises:
        ValueError: The token is so short that it could be guessed.
    """
    payload = _text(json.dumps(link._asdict(), separators=(",", ":")).encode())
    return f"{payload}.{_signature(payload, token)}"


def read_link(text: str, token: str, now: float) -> AnswerLink:
    """Return what a link says that `sign` has made with this token.

    Args:
        now: Seconds since 1970.

    Raises:
        Refused: It was made otherwise, or altered in any way, or has expired.
        ValueError: The token is so short that it could be guessed.
    """
    from hmac import compare_digest

    payload, _, signature = text.partition(".")
    is_text = len(text) <= _LONGEST and text.isascii()
    # The texts are compared: several texts in base64 stand for the same bytes.
    if not is_text or not compare_digest(_signature(payload, token), signature):
        raise Refused("this link was not made by this server, or before it got a new token", hint=_NEXT)
    link = _link_in(payload)
    if now >= link.expires:
        raise Refused(f"this link to {link.question} of {link.instance} has expired", hint=_NEXT)
    return link


def _link_in(payload: str) -> AnswerLink:
    """Return the link in a payload whose signature is right; one of another version may have another form."""
    try:
        value = json.loads(binascii.a2b_base64(payload.translate(_TO_BYTES) + "=" * (-len(payload) % 4)))
        link = AnswerLink(**value)
    except (ValueError, TypeError, RecursionError):
        link = None
    if link is None or not _is_whole(link):
        raise Refused("this link was made by another version of agentctl", hint=_NEXT)
    return link


def _is_whole(link: AnswerLink) -> bool:
    texts, names = (link.answer, link.digest), (link.task, link.instance, link.question)
    are_texts = all(isinstance(one, str) for one in (*texts, *names))
    return are_texts and all(map(is_name, names)) and type(link.expires) is int


def _signature(payload: str, token: str) -> str:
    import hmac

    if len(token) < SHORTEST_TOKEN:
        raise ValueError("a server's token is longer")
    key = hmac.digest(token.encode(), _PURPOSE, "sha256")
    return _text(hmac.digest(key, payload.encode(), "sha256"))


def _text(data: bytes) -> str:
    """Return bytes in base64, in the characters that a URL may have."""
    return binascii.b2a_base64(data, newline=False).decode().rstrip("=").translate(_TO_URL)

"""The message about one notice or several: what a program gets as JSON, and a person as a title and a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from agentctl.domain.notice.notice_text import clean
from agentctl.domain.notice.notices import BLOCKED, FAILED, KINDS, LIMIT, Notice
from agentctl.lean import Any, NamedTuple

SEVERAL, TEST = "several", "test"
_LONGEST_TITLE = 80
#: How many of several notices are spelled out, and how many are named by their keys.
_SHOWN, _NAMED = 5, 200


class NoticeMessage(NamedTuple):
    """What is sent to a target."""

    #: What happened: a kind of notice, `several` or `test`.
    event: str
    title: str
    text: str
    #: Everything as JSON: {id, event, taskId, taskTitle, at, text, repeated, url} and the facts of the notice.
    body: Mapping[str, Any]
    #: Where a browser shows it; empty while no server runs.
    url: str = ""
    #: Buttons that answer it, in the form of ntfy.
    actions: Sequence[Mapping[str, Any]] = ()

    def at(self, url: str) -> NoticeMessage:
        """Return the message with the link to what it is about."""
        return self._replace(body={**self.body, "url": url}, url=url)


def message_about(notices: Sequence[Notice], task_title: str, *, repeated: bool = False) -> NoticeMessage:
    """Return the message about one or several notices of a tree of tasks.

    Args:
        repeated: It may have been sent before.
    """
    first, title = notices[0], clean(task_title, _LONGEST_TITLE)
    text = first.text if len(notices) == 1 else _several(notices)
    body: dict[str, Any] = {"id": first.key, "event": first.kind, "taskId": first.task_id, "taskTitle": title}
    if len(notices) == 1:
        body |= {"agentInstance": first.instance, "at": first.at, **first.facts}
    else:
        counts = Counter(one.kind for one in notices)
        keys = [one.key for one in notices]
        body |= {"id": f"{keys[0]}+{len(keys) - 1}", "event": SEVERAL, "at": notices[-1].at, "events": dict(counts)}
        body |= {"ids": keys[:_NAMED]}
    text = f"(repeated) {text}" if repeated else text
    body |= {"text": text, "repeated": repeated}
    return NoticeMessage(body["event"], f"agentctl: {title or first.task_id}", text, body)


def _several(notices: Sequence[Notice]) -> str:
    counts = Counter(one.kind for one in notices)
    shown = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    lines = [one.text for one in notices[:_SHOWN]]
    more = [] if len(notices) <= _SHOWN else [f"and {len(notices) - _SHOWN} more"]
    return "\n".join([f"{len(notices)} notices: {shown}", *lines, *more])


def message_to_test(target: str, at: str) -> NoticeMessage:
    """Return a message that says nothing but that it arrived."""
    text = f"this is what a notice to {target} looks like"
    body = {"id": TEST, "event": TEST, "at": at, "text": text, "repeated": False}
    return NoticeMessage(TEST, "agentctl: a test", text, body)


def urgency(event: str) -> int:
    """Return how urgent a message is, from 1 to 5: a question and a failure more than the rest."""
    return {BLOCKED: 4, FAILED: 4, LIMIT: 3}.get(event, 3)

"""What leads from a message to what it is about, while a server of the root runs: a link, and buttons that answer.

A message without a link is better than none: whatever is wrong here, it is sent.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence

from agentctl.adapters.files import json_in
from agentctl.adapters.opening import read_bytes
from agentctl.adapters.paths import FilePath
from agentctl.adapters.served import RootServer, live_server
from agentctl.adapters.taskdir import TreeDir
from agentctl.domain.notice.answer_links import (
    LIFETIME_S,
    MOST_BUTTONS,
    OPEN_LABEL,
    AnswerLink,
    buttons_for,
    question_digest,
    sign,
    text_in_message,
)
from agentctl.domain.notice.notice_messages import NoticeMessage
from agentctl.domain.notice.notices import BLOCKED, Notice
from agentctl.domain.notice.targets import NTFY, NoticeTarget
from agentctl.domain.question import Question, question_in
from agentctl.errors import Damaged
from agentctl.lean import Any

#: A longer question has too much to be answered by a button.
_MOST_BYTES = 1 << 17


def with_links(
    message: NoticeMessage, notices: Sequence[Notice], target: NoticeTarget, tree: TreeDir, folder: FilePath
) -> NoticeMessage:
    """Return a message with the link to what it is about, and its buttons, if a server of the root lives.

    Args:
        notices: What the message is about.
        folder: Where servers say where they are.
    """
    try:
        served = live_server(folder, tree.root)
        if served is None:
            return message
        message = message.at(f"{served.url}{_path(notices, tree)}")
        if target.type != NTFY or not target.buttons or len(notices) != 1:
            return message
        return message._replace(actions=tuple(_actions(notices[0], message.url, tree, served)))
    except Exception:  # noqa: BLE001 - see above
        return message


def _path(notices: Sequence[Notice], tree: TreeDir) -> str:
    """Return the path of the page about notices; about several, that of their tree."""
    first = notices[0]
    if len(notices) > 1 or first.instance is None:
        return f"/tasks/{tree.id if len(notices) > 1 else first.task_id}"
    question = f"?question={first.question_id}" if first.question_id else ""
    return f"/tasks/{first.task_id}/workers/{first.instance}{question}"


def _actions(notice: Notice, url: str, tree: TreeDir, served: RootServer) -> Iterator[Mapping[str, Any]]:
    """Yield the buttons of a question, in the form of ntfy: its answers, if all of them may be offered."""
    if notice.kind != BLOCKED or notice.instance is None or notice.question_id is None:
        return
    question = None if served.is_read_only else _question(notice, tree)
    buttons = () if question is None else buttons_for(question)
    for button in buttons:
        assert question is not None
        link = AnswerLink(
            task=notice.task_id, instance=notice.instance, question=notice.question_id, answer=button.answer,
            digest=question_digest(question), expires=int(time.time()) + LIFETIME_S,
        )  # fmt: skip
        where = f"{served.url}/answer/{sign(link, served.token)}"
        yield {"action": "http", "label": button.label, "url": where, "method": "POST", "clear": True}
    if len(buttons) < MOST_BUTTONS:
        yield {"action": "view", "label": OPEN_LABEL, "url": url}


def _question(notice: Notice, tree: TreeDir) -> Question | None:
    """Return the question of a notice as its file has it now; None if its message does not show the whole text."""
    assert notice.instance is not None
    assert notice.question_id is not None
    file = tree.sibling(notice.task_id).worker(notice.instance).question(notice.question_id)
    try:
        question = question_in(notice.question_id, json_in(read_bytes(file, _MOST_BYTES), file))
    except (Damaged, OSError):
        return None
    if question is None or text_in_message(question) != notice.facts.get("question"):
        return None
    return question

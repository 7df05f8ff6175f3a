"""A server of a root, in the person of the test: what it says in memory, and what it does with a link."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agentctl.adapters.served import RootServer, announce, hold_server, server_file
from agentctl.adapters.taskdir import Root
from agentctl.domain.documents.workers.questions import AcceptedAnswer
from agentctl.domain.notice.answer_links import LIFETIME_S, AnswerLink, question_digest, sign
from agentctl.operations.talk.answering_link import answer_by_link
from agentctl.supervision.worker.environment import store_folder
from agentctl.supervision.worker.questions import read_question

URL, TOKEN = "http://127.0.0.1:8932", "a-token-that-nobody-guesses"


@contextmanager
def serving(root: Path, *, read_only: bool = False) -> Iterator[Root]:
    """Be the server of a root."""
    found = Root(str(root))
    lock = hold_server(store_folder(), found)
    assert lock is not None
    try:
        announce(store_folder(), found, RootServer(URL, TOKEN, read_only))
        yield found
    finally:
        os.close(lock)


def file_of(root: Path) -> Path:
    """Return the file in which the server of a root says where it is."""
    return Path(server_file(store_folder(), Root(str(root)), "json"))


def labels(post: dict[str, Any]) -> list[tuple[str, str]]:
    """Return kind and label of each button of a message."""
    return [(one["action"], one["label"]) for one in post.get("actions", [])]


def pressed(root: Path, post: dict[str, Any], label: str) -> AcceptedAnswer:
    """Press a button of a message, as ntfy does, whose request a server gets."""
    (button,) = (one for one in post["actions"] if one["label"] == label)
    assert (button["action"], button["method"], button["clear"]) == ("http", "POST", True)
    before, signed = button["url"].split("/answer/")
    assert before == URL
    return answer_by_link(Root(str(root)), signed, TOKEN, time.time())


def link_to(root: Path, answer: str) -> AnswerLink:
    """Return a link to the question q1 of worker a, as it is now."""
    question = read_question(Root(str(root)).task("t1").worker("a"), "q1")
    digest = question_digest(question) if question is not None else ""
    return AnswerLink("t1", "a", "q1", answer, digest, int(time.time()) + LIFETIME_S)


def used(root: Path, link: AnswerLink, *, token: str = TOKEN, now: float | None = None) -> AcceptedAnswer:
    """Use a link that was signed by the server."""
    return answer_by_link(Root(str(root)), sign(link, token), TOKEN, time.time() if now is None else now)

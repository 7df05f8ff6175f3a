"""At stake: a server that is slow or broken costs no more than it says, and is not given up too early."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agentctl.domain.states import Reason
from agentctl.worker_programs.plain_model.break_off import BreakOff
from agentctl.worker_programs.plain_model.model.answer import AnswerUsage
from agentctl.worker_programs.plain_model.model.model_call import Model, Partial, Reports
from agentctl.worker_programs.plain_model.model.refusals import Failure
from agentctl.worker_programs.plain_model.model.request import ModelRequest

Answer = Callable[["_Answering"], None]
ASKED = ModelRequest("m", "", [{"type": "user", "text": "Hi"}])
USAGE = {"prompt_tokens": 90, "completion_tokens": 7}
COUNTED = AnswerUsage(90, 7)


class _Answering(BaseHTTPRequestHandler):
    """Answers each request as the next of its server's answers does."""

    protocol_version = "HTTP/1.1"
    server: Script

    def do_POST(self) -> None:
        self.close_connection = True
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.answers.get_nowait()(self)

    def head(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Connection", "close")
        self.end_headers()

    def say(self, **fields: Any) -> None:
        self.wfile.write(b"data: " + json.dumps(fields).encode() + b"\n\n")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Script(ThreadingHTTPServer):
    """A server whose answers are known before."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.answers: queue.Queue[Answer] = queue.Queue()
        self.heard: queue.Queue[str] = queue.Queue()
        self.breaker = BreakOff()

    def model(self, **row: Any) -> Model:
        row = {"name": "lab", "url": f"http://127.0.0.1:{self.server_port}", "retries": 3, **row}
        reports = Reports(
            lambda *_: self.heard.put("retrying"), lambda: self.heard.put("progress"), lambda _: None, self.heard.put
        )
        return Model(row, None, self.breaker, reports)


@pytest.fixture
def script() -> Iterator[Script]:
    """A server that is asked."""
    with Script() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()


def refused(status: int) -> Answer:
    return lambda answering: answering.head(status)


def ending(finish: str | None, **more: Any) -> Answer:
    def answer(answering: _Answering) -> None:
        answering.head(200)
        answering.say(choices=[{"delta": {"content": "yes"}, "finish_reason": finish}], usage=USAGE, **more)

    return answer


def test_a_server_that_has_taken_a_request_is_heard_of_before_the_models_first_word(script: Script) -> None:
    """A local one may load its model first, and a host that hears nothing after a retry gives it up."""
    may_speak = threading.Event()

    def slow(answering: _Answering) -> None:
        answering.head(200)
        answering.wfile.write(b": keep-alive\n\n")
        may_speak.wait(10)
        answering.say(choices=[{"delta": {"content": "yes"}, "finish_reason": "stop"}])

    for answer in (refused(503), slow):
        script.answers.put(answer)
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(script.model().answer(ASKED, lambda _: None)))
    asking.start()
    assert [script.heard.get(timeout=9) for _ in range(2)] == ["retrying", "progress"]
    may_speak.set()
    asking.join(10)
    assert answers[0].text == "yes"


@pytest.mark.parametrize("finish", [None, "insufficient_system_resource"])
def test_an_answer_of_no_use_has_its_price(script: Script, finish: str | None) -> None:
    lost: list[AnswerUsage | None] = []
    for answer in (ending(finish), ending("content_filter")):
        script.answers.put(answer)
    with pytest.raises(Failure) as caught:
        script.model().answer(ASKED, lost.append)
    assert caught.value.reason is Reason.REFUSED
    assert lost == [COUNTED, COUNTED]


def test_nothing_is_asked_again_once_the_money_is_used_up(script: Script) -> None:
    def lost(_: AnswerUsage | None) -> None:
        raise InterruptedError

    script.answers.put(ending(None))
    with pytest.raises(InterruptedError):
        script.model().answer(ASKED, lost)


def test_an_answer_that_is_broken_off_has_its_price(script: Script) -> None:
    def endless(answering: _Answering) -> None:
        ending(None)(answering)
        answering.connection.recv(1)

    def interrupt() -> None:
        assert [script.heard.get(timeout=9) for _ in range(2)] == ["progress"] * 2  # The head, and a word.
        script.breaker.trip()

    script.answers.put(endless)
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(Partial) as caught:
        script.model().answer(ASKED, lambda _: None)
    assert (caught.value.answer.text, caught.value.answer.usage) == ("yes", COUNTED)

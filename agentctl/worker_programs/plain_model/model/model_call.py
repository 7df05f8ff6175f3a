"""Asks the model, again where a failure may pass, and returns its whole answer."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from agentctl.domain.states import Reason
from agentctl.domain.tree.windows import Window
from agentctl.lean import NamedTuple
from agentctl.worker_programs.plain_model.break_off import BreakOff, Interrupted
from agentctl.worker_programs.plain_model.model import chat_api, messages_api
from agentctl.worker_programs.plain_model.model.answer import (
    OVERLOADED,
    REFUSED,
    AnswerUsage,
    ModelAnswer,
    ServerSaidError,
)
from agentctl.worker_programs.plain_model.model.event_stream_data import SseStream, TooLong
from agentctl.worker_programs.plain_model.model.provider_key import Mask
from agentctl.worker_programs.plain_model.model.refusals import (
    LONG_S,
    Failure,
    failure_in_stream,
    failure_of,
    llm_windows,
)
from agentctl.worker_programs.plain_model.model.request import ModelRequest
from agentctl.worker_programs.plain_model.model.transport import (
    BadAddress,
    BrokenOffAnswer,
    CannotConnect,
    HttpAnswer,
)

#: How long a server may be silent. A local one may have to load its model first.
ANSWER_S = 600.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
#: The longest that a server may want to be left alone; the host gives a program up before that.
_LONGEST_TOLD_S = 86_400.0
#: How often a request is sent again; the host ends a program that retries for too long.
_RETRIES = 8
#: A server of this machine that does not listen has to be started by a person.
_RETRIES_OF_LOCAL = 3
_AGENT = "agentctl"
#: What ends a stream of chat completions.
_END = b"[DONE]"


class Unreachable(Failure):
    """Nobody listens at the address."""


class Reports(NamedTuple):
    """What is told while the model is asked."""

    retrying: Callable[[Failure, int], object]
    progress: Callable[[], object]
    windows: Callable[[tuple[Window, ...]], object]
    note: Callable[[str], object]


class Partial(Interrupted):
    """It was broken off; `answer` is what had come by then."""

    def __init__(self, answer: ModelAnswer) -> None:
        super().__init__("broken off")
        self.answer = answer


class Model:
    """One model of one provider.

    Args:
        provider: As an order has it (`drivers/llm/providers.py`).
    """

    def __init__(self, provider: Mapping[str, Any], key: str | None, breaker: BreakOff, reports: Reports) -> None:
        self._provider, self._breaker, self._reports = provider, breaker, reports
        self._api: ModuleType = messages_api if provider.get("dialect") == messages_api.DIALECT else chat_api
        self._key, self._mask = key, Mask(key)
        #: The optional fields that this server has refused.
        self._without: frozenset[str] = frozenset()

    def answer(self, request: ModelRequest, lost: Callable[[AnswerUsage | None], object]) -> ModelAnswer:
        """Return the model's answer.

        Args:
            lost: Told what an answer has cost that was of no use; it may raise, and nothing is asked again.

        Raises:
            Failure: There is none, and asking again would not help.
            Partial: It was broken off.
        """
        tries = 0
        while True:
            try:
                answer = self._once(request)
            except Failure as failure:
                lost(failure.usage)
                if self._leaves_out(failure, request):
                    continue
                tries += 1
                self._reports.windows(failure.windows)
                if not failure.is_transient or _is_held(failure) or tries > self._retries_of(failure):
                    raise
                self._reports.retrying(failure, tries)
                try:
                    self._breaker.sleep(_pause(tries, failure.retry_after_s))
                except Interrupted:
                    raise Partial(ModelAnswer()) from None
            else:
                self._reports.progress()
                return answer

    def _retries_of(self, failure: Failure) -> int:
        most = int(self._provider.get("retries", _RETRIES))
        is_off = isinstance(failure, Unreachable) and self._provider.get("local")
        return min(most, _RETRIES_OF_LOCAL) if is_off else most

    def _leaves_out(self, failure: Failure, request: ModelRequest) -> bool:
        """Return whether the request is sent again without optional fields: those that the refusal names, else all."""
        sent = self._api.body_of(request, self._without)
        fields = [name for name in self._api.OPTIONAL if name in sent]
        if failure.reason is not Reason.MODEL_ERROR or not failure.refused or not fields:
            return False
        named = [name for name in fields if name in failure.refused.lower()] or fields
        self._without |= frozenset(named)
        self._reports.note(f"{failure.message}; sent again without {', '.join(named)}")
        return True

    def _once(self, request: ModelRequest) -> ModelAnswer:
        body = json.dumps(self._api.body_of(request, self._without)).encode()
        headers = {
            **self._api.headers_of(self._key), "Content-Type": "application/json",
            "Accept": "text/event-stream, application/json", "User-Agent": _AGENT,
        }  # fmt: skip
        url = f"{self._provider['url']}{self._api.PATH}"
        assembler = self._api.ChatAssembler() if self._api is chat_api else self._api.MessagesAssembler()
        try:
            answer_s = float(self._provider.get("answerSeconds") or ANSWER_S)
            with HttpAnswer(url, headers, body, self._breaker, answer_s) as reply:
                if reply.status != 200:
                    raise self._refusal(reply, request.model)
                self._reports.progress()  # It has taken the request: a local one may have to load its model now.
                self._reports.windows(llm_windows(reply.headers))
                self._read(reply, assembler)
        except CannotConnect as error:
            raise self._unreachable(error) from error
        except Interrupted:
            raise Partial(assembler.answer()) from None
        except ServerSaidError as error:
            failure = failure_in_stream(json.loads(self._mask.data(json.dumps(error.error).encode())), time.time())
            raise failure.with_usage(assembler.answer().usage) from error
        except (BrokenOffAnswer, TooLong) as error:
            return self._judged(assembler.answer(), str(error))
        return self._judged(assembler.answer(), "the stream ended before the answer was whole")

    def _refusal(self, reply: HttpAnswer, model: str) -> Failure:
        said = self._mask.data(reply.error_body())  # Hidden before it is cut: half a key is one, too.
        who = f"{self._provider.get('name')} at {self._provider.get('url')}"
        failure = failure_of(reply.status, reply.headers, said, time.time(), who=who)
        if failure.reason is Reason.AUTH:
            failure.message += f" ({self._origin_of_key()})"
        elif reply.status == 404:
            failure.message += f" (it was asked for the model {model})"
        return failure

    def _origin_of_key(self) -> str:
        if self._key is None:
            return "no key was sent"
        variable = self._provider.get("keyVariable")
        is_set = variable and os.environ.get(str(variable), "").strip()
        return f"the key is that in {variable}" if is_set else "the key is that which keyCommand has printed"

    def _read(self, reply: HttpAnswer, assembler: Any) -> None:
        """Read a stream of events; a server may answer in one piece, although it was asked for a stream."""
        stream, whole, is_stream = SseStream(), bytearray(), None
        for chunk in reply.chunks():
            if is_stream is None and (begin := chunk.lstrip()):
                is_stream = not begin.startswith(b"{")
            if is_stream is not True:
                whole += chunk
                continue
            for data in stream.feed(chunk):
                if data.strip() == _END:
                    return  # Whatever may still come.
                assembler.take(data)
                if assembler.has_begun:
                    self._reports.progress()
        if is_stream:
            for data in stream.rest():
                assembler.take(data)
        else:
            assembler.take(bytes(whole))

    def _judged(self, answer: ModelAnswer, cut: str) -> ModelAnswer:
        """Return an answer that is whole.

        Raises:
            Failure: It broke off, or the model declined.
        """
        if answer.finish is None:
            failure = Failure(Reason.TRUNCATED, f"the answer was cut off: {cut}", is_transient=True)
        elif answer.finish == OVERLOADED:
            failure = Failure(Reason.OVERLOADED, "the server had no room to finish the answer", is_transient=True)
        elif answer.finish == REFUSED:
            failure = Failure(Reason.REFUSED, answer.text or "the model declined to answer, or its answer was filtered")
        else:
            return answer
        raise failure.with_usage(answer.usage)

    def _unreachable(self, why: CannotConnect) -> Unreachable:
        name, url = self._provider.get("name"), self._provider.get("url")
        message = f"{name} cannot be reached at {url}: {why}"
        start = self._provider.get("start")
        if self._provider.get("local") and start:
            message += f"; start it: {start}"
        return Unreachable(Reason.MODEL_ERROR, message, is_transient=not isinstance(why, BadAddress))


def _is_held(failure: Failure) -> bool:
    """Return whether the account is used up for longer than anybody would wait here."""
    is_long = failure.retry_after_s is not None and failure.retry_after_s > LONG_S
    return failure.reason is Reason.RATE_LIMITED and (is_long or any(one.is_rejected for one in failure.windows))


def _pause(tries: int, told_s: float | None) -> float:
    """Return how many seconds to wait before the next try, with some chance in it: others may wait as well."""
    own: float = min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2 ** min(tries - 1, 10))
    return min(_LONGEST_TOLD_S, max(told_s or 0.0, own * (0.5 + random.random() / 2)))

"""At stake: a refusal of a server means the same for the worker, in whosever words it comes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.states import Reason
from agentctl.drivers.acp.ends import failed
from agentctl.drivers.jsonrpc import RpcError
from agentctl.worker_programs.plain_model.model.refusals import (
    failure_in_stream,
    failure_of,
    limit_in,
    llm_windows,
    retry_after_in,
)

NOW = 1_800_000_000.0


def body(**error: Any) -> bytes:
    return json.dumps({"error": error}).encode()


@pytest.mark.parametrize(
    ("status", "said", "reason", "again"),
    [
        (401, body(message="Incorrect API key"), Reason.AUTH, False),
        (403, b"<html>Forbidden</html>", Reason.AUTH, False),
        (400, body(message="API key not valid. Please pass a valid API key."), Reason.AUTH, False),
        (402, b"{}", Reason.BILLING, False),
        (429, body(code="insufficient_quota"), Reason.BILLING, False),
        (400, body(message="Your credit balance is too low"), Reason.BILLING, False),
        (429, b"", Reason.RATE_LIMITED, True),
        (503, b"", Reason.OVERLOADED, True),
        (529, body(type="overloaded_error"), Reason.OVERLOADED, True),
        (500, b"", Reason.MODEL_ERROR, True),
        (502, b"", Reason.MODEL_ERROR, True),
        (404, body(message="model 'x' not found"), Reason.MODEL_ERROR, False),
        (400, body(message="bad request"), Reason.MODEL_ERROR, False),
        (400, body(code="context_length_exceeded"), Reason.CONTEXT, False),
        (400, body(type="exceed_context_size_error", message="the request exceeds"), Reason.CONTEXT, False),
        (413, b"", Reason.CONTEXT, False),
        (400, body(type="invalid_request_error", message="prompt is too long: 9 tokens > 5"), Reason.CONTEXT, False),
        (400, body(code="content_filter"), Reason.REFUSED, False),
        (400, body(message="max_output_tokens is larger than 8192"), Reason.MODEL_ERROR, False),
        (500, body(message="the prompt exceeds the context size"), Reason.CONTEXT, False),
        (
            413,
            body(code="rate_limit_exceeded", message="Upgrade at https://x/settings/billing"),
            Reason.RATE_LIMITED,
            True,
        ),
    ],
)
def test_what_a_refusal_means(status: int, said: bytes, reason: Reason, *, again: bool) -> None:
    failure = failure_of(status, {}, said, NOW)
    assert (failure.reason, failure.is_transient) == (reason, again)
    assert str(status) in failure.message


@pytest.mark.parametrize(
    ("status", "sentence", "reason"),
    [
        (429, "You exceeded your current quota, please check your plan and billing details.", Reason.BILLING),
        (
            429,
            "You exceeded your current quota, check your billing.\nPlease retry in 39.2s.",
            Reason.RATE_LIMITED,
        ),
        (429, "Rate limit reached. Add a payment method: https://x/account/billing", Reason.RATE_LIMITED),
        (429, "You are out of credits", Reason.BILLING),
        (400, "context exceeds model limit", Reason.CONTEXT),
        (500, "Invalid API key", Reason.AUTH),
        (400, "insufficient credits", Reason.BILLING),
        (400, "API key not valid", Reason.AUTH),
    ],
)
def test_the_same_words_mean_the_same_whoever_passes_them_on(status: int, sentence: str, reason: Reason) -> None:
    assert failure_of(status, {}, body(message=sentence), NOW).reason is reason
    assert failed(RpcError("Internal error", -32603, {"status": status, "message": sentence}))[0] is reason


@given(st.integers(400, 599), st.dictionaries(st.sampled_from(
    ["retry-after", "retry-after-ms", "x-ratelimit-reset-requests", "anthropic-ratelimit-unified-5h-reset",
     "anthropic-ratelimit-unified-5h-utilization", "anthropic-ratelimit-unified-7d-status"]), st.text(max_size=12)),
    st.binary(max_size=80))  # fmt: skip
def test_any_refusal_is_understood_somehow(status: int, headers: dict[str, str], said: bytes) -> None:
    failure = failure_of(status, headers, said, NOW)
    assert failure.retry_after_s is None or failure.retry_after_s >= 0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"x-ratelimit-reset-tokens": "2m59.56s"}, 179.56),
        ({"x-ratelimit-reset-requests": "120ms"}, 0.12),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-remaining-requests": "5"}, None),
    ],
)
def test_how_long_it_wants_to_be_left_alone(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_in(headers, NOW) == (None if seconds is None else pytest.approx(seconds))


def test_a_long_wait_is_a_window_that_is_used_up() -> None:
    failure = failure_of(429, {"retry-after": "3600"}, b"", NOW)
    assert [(window.is_rejected, window.resets_at) for window in failure.windows] == [(True, NOW + 3600)]
    assert failure_of(429, {"retry-after": "5"}, b"", NOW).windows == ()


def test_the_windows_of_an_account() -> None:
    head = "anthropic-ratelimit-unified-"
    found = llm_windows({f"{head}5h-utilization": "1.0", f"{head}5h-reset": "99", f"{head}5h-status": "rejected",
                        f"{head}7d-utilization": "0.125"})  # fmt: skip
    assert [(one.name, one.used_percent, one.resets_at, one.is_rejected) for one in found] == [
        ("five_hour", 100.0, 99.0, True), ("seven_day", 12.5, None, False),
    ]  # fmt: skip


def test_an_error_in_a_stream_means_what_its_code_says() -> None:
    assert failure_in_stream({"code": 429, "message": "slow down"}, NOW).reason is Reason.RATE_LIMITED
    assert failure_in_stream({"type": "overloaded_error"}, NOW).reason is Reason.OVERLOADED
    assert failure_in_stream("broken", NOW).reason is Reason.MODEL_ERROR


@pytest.mark.parametrize(
    ("sentence", "limit"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("This endpoint's maximum context length is 131072 tokens", 131_072),
        ("the request exceeds the available context size (4096 tokens)", 4096),
        ("too long", None),
    ],
)
def test_the_limit_that_an_error_names(sentence: str, limit: int | None) -> None:
    assert limit_in(sentence) == limit

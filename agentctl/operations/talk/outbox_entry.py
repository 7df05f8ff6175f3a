"""Parses an entry of an outbox: a report or a question of a worker, checked key by key; unknown keys are ignored."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from agentctl.domain.answers import check_question
from agentctl.domain.names import is_name
from agentctl.domain.question import AnswerOption, Question
from agentctl.domain.text.numbers import finite
from agentctl.domain.worker.reports import DeclaredFile, MessageReport, ProgressReport, Report, ResultReport
from agentctl.errors import UsageError

_MOST_OPTIONS = 100
_SHA256 = re.compile(r"[0-9a-f]{64}")


class BadEntry(Exception):
    """The file does not hold a valid entry; the message says why."""


Entry = Report | Question


def entry_in(data: bytes) -> Entry:
    """Return the entry in a file: a report or a question.

    Raises:
        BadEntry: The file does not hold a valid entry.
    """
    try:
        given = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadEntry("it is not JSON, or too long") from error
    read = _READERS.get(str(given.get("verb"))) if isinstance(given, dict) else None
    if read is None:
        raise BadEntry("it is neither a report nor a question")
    return read(given)


def _progress(given: Mapping[str, Any]) -> ProgressReport:
    percent, text = _number(given, "percent", 100), _text(given, "text")
    if percent is None and not text:
        raise BadEntry("it reports no progress")
    return ProgressReport(percent, text)


def _message(given: Mapping[str, Any]) -> MessageReport:
    text = _text(given, "text") or ""
    if not text.strip():
        raise BadEntry("its message is empty")
    return MessageReport(text)


def _result(given: Mapping[str, Any]) -> ResultReport:
    summary, artifact = _text(given, "summary"), given.get("artifact")
    if not summary and artifact is None:
        raise BadEntry("its result is empty")
    return ResultReport(summary, None if artifact is None else _artifact(artifact))


def _artifact(given: Any) -> DeclaredFile:
    if not isinstance(given, dict):
        raise BadEntry("its artifact is not an object")
    path, size, digest = (given.get(key) for key in ("path", "size", "sha256"))
    if not (isinstance(path, str) and path.startswith("/") and "\0" not in path):
        raise BadEntry("its artifact has no path")
    if not (isinstance(size, int) and size >= 0 and isinstance(digest, str) and _SHA256.fullmatch(digest)):
        raise BadEntry("its artifact has no size or digest")
    return DeclaredFile(path, int(size), digest)


def _question(given: Mapping[str, Any]) -> Question:
    """Return a question to a person. It has no tool: only a driver may ask for a permission."""
    name, kind, text = (given.get(key) for key in ("id", "kind", "question"))
    if not (isinstance(name, str) and is_name(name) and isinstance(kind, str) and isinstance(text, str)):
        raise BadEntry("its question lacks an id, a kind or a text")
    deadline_s = _number(given, "deadlineSeconds", math.inf)
    options, default = _options(given.get("options")), _text(given, "default")
    question = Question(name, kind, text, options, default, deadline_s=deadline_s)
    try:
        check_question(question)
    except UsageError as error:
        raise BadEntry(f"its question cannot be asked: {error.message}"[:200]) from error
    return question


def _options(given: Any) -> tuple[AnswerOption, ...]:
    options = given if isinstance(given, list) else None
    if options is None or len(options) > _MOST_OPTIONS or not all(isinstance(option, dict) for option in options):
        raise BadEntry(f"its options are not a list of at most {_MOST_OPTIONS} objects")
    found = [AnswerOption(option.get("id"), option.get("label")) for option in options]
    if not all(isinstance(value, str) for option in found for value in option):
        raise BadEntry("its options lack an id or a label")
    return tuple(found)


def _text(given: Mapping[str, Any], key: str) -> str | None:
    value = given.get(key)
    if value is not None and not isinstance(value, str):
        raise BadEntry(f"its {key} is not a string")
    return value


def _number(given: Mapping[str, Any], key: str, most: float) -> float | None:
    value = given.get(key)
    if value is None:
        return None
    number = finite(value)
    if number is None or not 0 <= number <= most:
        raise BadEntry(f"its {key} is not a number in the allowed range")
    return float(number)


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Entry]] = {
    "progress": _progress,
    "message": _message,
    "result": _result,
    "ask": _question,
}

"""What a file in an outbox says: one word of a worker, checked key by key; keys that are not known are left out."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from agentctl.domain.answers import check_question
from agentctl.domain.names import is_name
from agentctl.domain.numbers import finite
from agentctl.errors import UsageError

Word = dict[str, Any]
_MOST_OPTIONS = 100
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Junk(Exception):
    """A file that is no word; says why."""


def word_in(data: bytes) -> Word:
    """Return the word that a file holds: as `operations/talk/reporting.py` keeps it, or a question.

    Raises:
        Junk: It holds none.
    """
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Junk("it is no file of JSON, or a too long one") from error
    make = _WORDS.get(str(told.get("verb"))) if isinstance(told, dict) else None
    if make is None:
        raise Junk("it says nothing that a worker may say")
    return {"verb": told["verb"], **make(told)}


def _progress(told: Mapping[str, Any]) -> Word:
    percent, text = _number(told, "percent", 100), _text(told, "text")
    if percent is None and not text:
        raise Junk("it tells no progress")
    return {"percent": percent, "text": text}


def _message(told: Mapping[str, Any]) -> Word:
    text = _text(told, "text") or ""
    if not text.strip():
        raise Junk("its message is empty")
    return {"text": text}


def _result(told: Mapping[str, Any]) -> Word:
    summary, artifact = _text(told, "summary"), told.get("artifact")
    if not summary and artifact is None:
        raise Junk("its result is empty")
    return {"summary": summary, "artifact": None if artifact is None else _artifact(artifact)}


def _artifact(told: Any) -> Word:
    if not isinstance(told, dict):
        raise Junk("its artifact is none")
    path, size, digest = (told.get(key) for key in ("path", "size", "sha256"))
    if not (isinstance(path, str) and path.startswith("/") and "\0" not in path):
        raise Junk("its artifact has no path")
    if not (isinstance(size, int) and size >= 0 and isinstance(digest, str) and _SHA256.fullmatch(digest)):
        raise Junk("its artifact has no size or digest")
    return {"path": path, "size": int(size), "sha256": digest}


def _question(told: Mapping[str, Any]) -> Word:
    """Return a question to a person. It has no tool: a request for permission is the driver's alone to make."""
    name, kind, question = (told.get(key) for key in ("id", "kind", "question"))
    if not (isinstance(name, str) and is_name(name) and isinstance(kind, str) and isinstance(question, str)):
        raise Junk("its question is none")
    options, default = _options(told.get("options")), _text(told, "default")
    try:
        check_question({"kind": kind, "question": question, "options": options}, default)
    except UsageError as error:
        raise Junk(f"its question cannot be asked: {error.message}"[:200]) from error
    deadline = _number(told, "deadlineSeconds", math.inf)
    body = {"kind": kind, "question": question, "options": options, "default": default, "deadlineSeconds": deadline}
    return {"id": name, "body": body}


def _options(told: Any) -> list[dict[str, str]]:
    options = told if isinstance(told, list) else None
    if options is None or len(options) > _MOST_OPTIONS or not all(isinstance(option, dict) for option in options):
        raise Junk("its options are none")
    found = [{key: option.get(key) for key in ("id", "label")} for option in options]
    if not all(isinstance(value, str) for option in found for value in option.values()):
        raise Junk("its options are none")
    return found


def _text(told: Mapping[str, Any], key: str) -> str | None:
    value = told.get(key)
    if value is not None and not isinstance(value, str):
        raise Junk(f"its {key} is no text")
    return value


def _number(told: Mapping[str, Any], key: str, most: float) -> float | None:
    value = told.get(key)
    if value is None:
        return None
    number = finite(value)
    if number is None or not 0 <= number <= most:
        raise Junk(f"its {key} is no number that it could be")
    return float(number)


_WORDS: Mapping[str, Callable[[Mapping[str, Any]], Word]] = {
    "progress": _progress,
    "message": _message,
    "result": _result,
    "ask": _question,
}

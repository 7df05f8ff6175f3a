"""The conversation of an agent, and its file `conversation.jsonl`: one record a line, each on disk before it counts.

Records: `begin` {session, model, continues}, `user` {text}, `assistant` {text, thought, calls, sealed, model},
`result` {call, name, text, status}, `summary` {text, kept}. A begin starts the conversation anew: what it continues is
copied behind it. The file is only appended to; a summary replaces older messages for the model alone.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from agentctl.adapters.files import write_all
from agentctl.adapters.opening import open_plain, read_bytes
from agentctl.domain.activity.row import CALL_ENDS
from agentctl.domain.states import Reason
from agentctl.drivers.values import list_in, object_in, text_in
from agentctl.lean import NamedTuple
from agentctl.worker_programs.plain_model.model.refusals import Failure

Record = dict[str, Any]
MESSAGES = frozenset({"user", "assistant", "result"})
#: A longer conversation is not continued.
_LARGEST = 256 << 20
#: The result of a call whose end nobody has seen.
UNKNOWN = "Interrupted: it is unknown how far this call got. Look before you do it again."


class Kept(NamedTuple):
    """A conversation as a file has it. `session` is the same for all runs that continue each other."""

    session: str
    records: Sequence[Record]


def records_in(data: bytes) -> Kept:
    """Return the newest conversation in a file; lines that hold no record are passed over.

    >>> records_in(b'{"type": "begin", "session": "t1/a"}\\n{"type": "user", "text": "Hi"}\\n{"type": "us')
    Kept(session='t1/a', records=[{'type': 'user', 'text': 'Hi'}])
    """
    session = ""
    found: list[Record] = []
    for line in data.split(b"\n"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        record = _checked(value)
        if record is None:
            continue
        if record["type"] == "begin":
            session, found = text_in(record.get("session")), []
        else:
            found.append(record)
    return Kept(session, found)


def _checked(value: Any) -> Record | None:
    """Return a record with fields of the right types; None where it is of no known kind."""
    record = object_in(value)
    match record.get("type"):
        case "begin":
            return record
        case "user":
            return {"type": "user", "text": text_in(record.get("text"))}
        case "result" if text_in(record.get("call")):
            status = text_in(record.get("status"))
            texts = {name: text_in(record.get(name)) for name in ("call", "name", "text")}
            return {"type": "result", **texts, "status": status if status in CALL_ENDS else "failed"}
        case "assistant":
            return _assistant(record)
        case "summary" if type(record.get("kept")) is int:
            return {"type": "summary", "text": text_in(record.get("text")), "kept": record["kept"]}
    return None


def _assistant(record: Mapping[str, Any]) -> Record:
    calls = [
        {
            "id": text_in(call.get("id")), "name": text_in(call.get("name")),
            "arguments": object_in(call.get("arguments")), "extra": object_in(call.get("extra")),
        }
        for call in map(object_in, list_in(record.get("calls")))
        if text_in(call.get("id")) and text_in(call.get("name"))
    ]  # fmt: skip
    texts = {name: text_in(record.get(name)) for name in ("text", "thought", "model")}
    sealed = [block for block in list_in(record.get("sealed")) if isinstance(block, dict)]
    return {"type": "assistant", **texts, "calls": calls, "sealed": sealed}


def healed(records: Iterable[Record]) -> list[Record]:
    """Return records in which every call has exactly one result, right behind it; a result without a call is left out.

    A result belongs to the newest message before it: servers give the same ids again. A call whose result is missing
    was under way when everything was killed: nobody knows how far it got.
    """
    found: list[Record] = []
    calls: Sequence[Record] = ()
    results: dict[str, Record] = {}
    for record in records:
        if record["type"] == "result":
            results.setdefault(record["call"], record)
            continue
        found += [*_results_of(calls, results), record]
        calls, results = record.get("calls", ()), {}
    return [*found, *_results_of(calls, results)]


def _results_of(calls: Iterable[Record], results: Mapping[str, Record]) -> list[Record]:
    missing = {"type": "result", "text": UNKNOWN, "status": "cancelled"}
    return [results.get(call["id"]) or {**missing, "call": call["id"], "name": call["name"]} for call in calls]


def messages_for_model(records: Sequence[Record]) -> list[Record]:
    """Return the messages that the model is to read: behind a summary only the first one and the newest."""
    messages = [record for record in records if record["type"] in MESSAGES]
    summary = next((record for record in reversed(records) if record["type"] == "summary"), None)
    if summary is None or not messages:
        return messages
    kept = min(max(0, summary["kept"]), len(messages))
    task = next((record["text"] for record in messages[:kept] if record["type"] == "user"), "")
    text = f"{task}\n\n[The conversation was long. What has happened since, in short:]\n\n{summary['text']}"
    rest = messages[kept:]
    while rest and rest[0]["type"] == "result":
        rest = rest[1:]
    return [{"type": "user", "text": text}, *rest]


class Conversation:
    """A conversation that is written down as it goes.

    Args:
        hide: Removes what may be in no file from the bytes of a line.
    """

    def __init__(self, path: str, hide: Callable[[bytes], bytes]) -> None:
        self.records: list[Record] = []
        self._hide = hide
        self._fd = open_plain(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        self._heal_end()

    def _heal_end(self) -> None:
        """Cut off a last line that a crash, or a full disk, has torn."""
        size = os.fstat(self._fd).st_size
        end = size
        while end > 0:
            start = max(0, end - (1 << 16))
            block = os.pread(self._fd, end - start, start)
            if (found := block.rfind(b"\n")) >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            os.ftruncate(self._fd, end)

    def begin(self, session: str, model: str, continues: str | None, records: Iterable[Record]) -> None:
        """Begin anew, or with the records of the conversation that is continued."""
        self._write({"type": "begin", "session": session, "model": model, "continues": continues})
        for record in healed(records):
            self.add(record)
        self.sync()

    def add(self, record: Record) -> None:
        """Append a record; it counts from the next `sync` on.

        Raises:
            Failure: It cannot be written.
        """
        self._write(record)
        self.records.append(record)

    def _write(self, record: Mapping[str, Any]) -> None:
        try:
            write_all(self._fd, self._hide(json.dumps(record, separators=(",", ":")).encode()) + b"\n")
        except OSError as error:
            with contextlib.suppress(OSError):
                self._heal_end()
            raise _not_written(error) from error

    def sync(self) -> None:
        """Put all of it on disk.

        Raises:
            Failure: It cannot be written.
        """
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise _not_written(error) from error


def _not_written(error: OSError) -> Failure:
    return Failure(Reason.EXIT_CODE, f"the conversation cannot be written down: {error.strerror or error}")


def read_conversation(path: str) -> Kept | None:
    """Return the newest conversation of a file; None where there is none."""
    try:
        return records_in(read_bytes(path, _LARGEST))
    except FileNotFoundError:
        return None

"""The book of what was told: which notice was sent to which target, by whom, and how often that was tried.

`notices.jsonl` of the root task, one line for each step, appended under the file's own lock. A notice is claimed before
it is sent, and marked after. A claim without a mark whose holder is gone may have been sent: it is sent again, and says
so. A line that is not an entry is passed over.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence

from agentctl.adapters import processes
from agentctl.adapters.clock import now_iso
from agentctl.adapters.eventlog import blocks, cut_torn_tail
from agentctl.adapters.files import storage_errors, to_json, write_all
from agentctl.adapters.locks import locked
from agentctl.adapters.opening import MOST_BYTES, OddFile, open_plain
from agentctl.adapters.paths import FilePath
from agentctl.adapters.processes import Identity, Life
from agentctl.lean import Any, NamedTuple

#: The steps. A notice of which one of the last three is noted is done.
CLAIMED, FAILED, SENT, SEEN, REFUSED = "claimed", "failed", "sent", "seen", "refused"
DONE = frozenset({SENT, SEEN, REFUSED})
_LONGEST_SAID = 200


class Step(NamedTuple):
    """The last step about one notice and one target."""

    what: str
    at: str
    #: Who claimed it.
    by: Identity | None = None
    #: What came back.
    said: str = ""
    #: It may have arrived although no answer came.
    maybe: bool = False
    #: How often it has failed.
    tries: int = 0


class Claimed(NamedTuple):
    """Notices that this process is to send."""

    keys: list[str]
    #: One of them may have been sent before.
    repeated: bool


class Book:
    """The book of a tree of tasks, as far as it was read."""

    def __init__(self, path: FilePath) -> None:
        self._path, self._offset = path, 0
        self.steps: dict[tuple[str, str], Step] = {}

    def refresh(self) -> None:
        """Read what was added.

        Raises:
            OddFile: It is larger than any book of ours.
        """
        try:
            fd = open_plain(self._path)
        except FileNotFoundError:
            return
        try:
            self._read(fd)
        finally:
            os.close(fd)

    def _read(self, fd: int) -> None:
        size = os.fstat(fd).st_size
        if size > MOST_BYTES:
            raise OddFile(
                f"{self._path} is larger than {MOST_BYTES} bytes", hint="remove it: some notices are then repeated"
            )
        if size < self._offset:  # Somebody has removed lines.
            self._offset, self.steps = 0, {}
        for behind, lines in blocks(fd, self._offset):
            self._offset = behind
            for line in lines.splitlines():
                self._take_in(line)

    def _take_in(self, line: bytes) -> None:
        try:
            value = json.loads(line)
            target, keys, what = value["target"], value["keys"], value["step"]
            step = Step(
                str(what), str(value.get("at")), processes.identity_from(value.get("by")), str(value.get("said", "")),
                value.get("maybe") is True,
            )  # fmt: skip
            for key in keys:
                self._enter(str(target), str(key), step)
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            return

    def _enter(self, target: str, key: str, step: Step) -> None:
        before = self.last(target, key)
        if before.what not in DONE:
            # It stays so, also when a later try has failed for sure. A claim upon a claim: the first one has no mark.
            maybe = step.maybe or before.maybe or step.what == before.what == CLAIMED
            tries = before.tries + (step.what == FAILED)
            self.steps[target, key] = step._replace(maybe=maybe, tries=tries)

    def last(self, target: str, key: str) -> Step:
        """Return the last step about a notice and a target."""
        return self.steps.get((target, key), _NOTHING)

    def is_done(self, target: str, key: str) -> bool:
        """Return whether nothing is left to do about a notice for a target."""
        return self.last(target, key).what in DONE

    def claim(self, target: str, keys: Sequence[str], me: Identity | None) -> Claimed:
        """Claim notices for a target, those that no live process has claimed and that are not done.

        Raises:
            StorageError: Nothing can be written, so nothing may be sent.
        """
        with storage_errors(self._path, "append to"), locked(self._path) as fd:
            self._read(fd)
            free = [key for key in keys if self._is_free(target, key, me)]
            repeated = any(self._may_have_arrived(target, key) for key in free)
            if free:
                by = me.to_json() if me else None
                self._append(fd, {"target": target, "keys": free, "step": CLAIMED, "at": now_iso(), "by": by})
            return Claimed(free, repeated)

    def _is_free(self, target: str, key: str, me: Identity | None) -> bool:
        step = self.last(target, key)
        if step.what in DONE:
            return False
        is_held = step.what == CLAIMED and step.by not in (None, me)
        return not (is_held and step.by is not None and processes.life_of(step.by) is not Life.GONE)

    def _may_have_arrived(self, target: str, key: str) -> bool:
        step = self.last(target, key)
        return step.what == CLAIMED or step.maybe

    def note(self, target: str, keys: Iterable[str], step: str, said: str = "", *, maybe: bool = False) -> None:
        """Note a step about notices.

        Raises:
            StorageError: It cannot be written.
        """
        row: dict[str, Any] = {"target": target, "keys": list(keys), "step": step, "at": now_iso()}
        row |= ({"said": said[:_LONGEST_SAID]} if said else {}) | ({"maybe": True} if maybe else {})
        with storage_errors(self._path, "append to"), locked(self._path) as fd:
            self._read(fd)
            self._append(fd, row)

    def _append(self, fd: int, row: Mapping[str, Any]) -> None:
        """Append a line to the locked file, and take it in."""
        size = cut_torn_tail(fd)
        os.lseek(fd, size, os.SEEK_SET)
        try:
            write_all(fd, to_json(row))
        except BaseException:
            os.ftruncate(fd, size)
            raise
        self._read(fd)


_NOTHING = Step("", "")

"""Edits of files that belong to other programs: each can be undone, and changes only what is its own."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentctl.domain.text import jsontext
from agentctl.errors import Refused

NAME = "agentctl"


@dataclass(frozen=True, slots=True)
class JsonEdit:
    """An edit of a JSON file: members to set, and items to add to arrays."""

    path: str
    members: Sequence[tuple[tuple[str, ...], Any]] = ()
    items: Sequence[tuple[tuple[str, ...], Any]] = ()
    #: Another file, which the program uses instead if it exists.
    beside: str | None = None

    def applied(self, before: str | None) -> str:
        """Return the text of the file with the edit."""
        if self.beside is not None and os.path.exists(self.beside):
            raise self._refused(f"{self.beside} is used in its place")
        text = before or ""
        try:
            for path, value in self.members:
                text = jsontext.set_member(text, path, value)
            for path, value in self.items:
                text = jsontext.add_item(text, path, value)
        except jsontext.NotJson as error:
            raise self._refused(f"{self.path} cannot be changed safely: {error}") from error
        return text if text.endswith("\n") or before else f"{text}\n"

    def removed(self, now: str, before: str | None) -> str | None:
        """Return the text without the edit, and without containers that it alone had filled. None: nothing is left."""
        text = now
        old = _parsed(before)
        try:
            for path, value in self.items:
                if value not in (jsontext.lookup(old, path) or []):
                    text = self._pruned(jsontext.remove_item(text, path, value), path, old, [])
            for path, _ in self.members:
                was = jsontext.lookup(old, path)
                text = jsontext.set_member(text, path, was) if was is not None else jsontext.remove_member(text, path)
                text = self._pruned(text, path[:-1], old, {})
            return None if before is None and not jsontext.parse_json(text) else text
        except jsontext.NotJson as error:
            raise self._refused(f"{self.path} cannot be changed safely: {error}", verb="remove") from error

    def _pruned(self, text: str, path: tuple[str, ...], old: Any, empty: Any) -> str:
        while path and jsontext.lookup(old, path) is None and jsontext.lookup(jsontext.parse_json(text), path) == empty:
            text, path, empty = jsontext.remove_member(text, path), path[:-1], {}
        return text

    def _refused(self, why: str, verb: str = "add") -> Refused:
        entries = {".".join(path): value for path, value in (*self.members, *self.items)}
        return Refused(why, hint=f"{verb} by hand: {json.dumps(entries)}")


@dataclass(frozen=True, slots=True)
class BlockEdit:
    """A block between two marker lines at the end of a text file; `comment` begins and ends a comment line."""

    path: str
    body: str
    comment: tuple[str, str]
    #: A line that must not exist outside of the block.
    clash: str | None = None

    @property
    def _marks(self) -> tuple[str, str]:
        head, tail = self.comment
        return (
            f"{head}begin {NAME}: written by `agentctl install`, taken out by `agentctl install --undo`{tail}",
            f"{head}end {NAME}{tail}",
        )

    def applied(self, before: str | None) -> str:
        """Return the text of the file with the block; an existing block is replaced in place."""
        begin, end = self._marks
        block = f"{begin}\n{self.body.rstrip()}\n{end}\n"
        text = before or ""
        place = self._place(text)
        if place is not None:
            return text[: place[0]] + block + text[place[1] :]
        if self.clash is not None and self.clash in [line.strip() for line in text.splitlines()]:
            raise Refused(f"{self.path} already has a {self.clash}", hint="remove it, then install again")
        if not text:
            return block
        return text + ("" if text.endswith("\n") else "\n") + "\n" + block

    def removed(self, now: str, before: str | None) -> str | None:
        """Return the text without the block. None: nothing is left."""
        place = self._place(now)
        if place is None:
            return now
        head, tail = now[: place[0]], now[place[1] :]
        if head.endswith("\n\n"):
            head = head[:-1]
        text = head + tail
        return None if before is None and not text.strip() else text

    def _place(self, text: str) -> tuple[int, int] | None:
        begin, end = self._marks
        start = text.find(begin)
        last = text.find(end, start) if start >= 0 else -1
        if last < 0:
            return None
        stop = last + len(end)
        return start, stop + 1 if text[stop : stop + 1] == "\n" else stop


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A file that belongs to agentctl alone."""

    path: str
    body: str

    def applied(self, _before: str | None) -> str:
        """Return the text of the file."""
        return self.body

    def removed(self, now: str, before: str | None) -> str | None:
        """Return the text from before the edit; a file that was changed since stays as it is."""
        if now != self.body:
            return now
        return before if before != self.body else None


Edit = JsonEdit | BlockEdit | FileEdit


def _parsed(text: str | None) -> Any:
    try:
        return jsontext.parse_json(text or "")
    except jsontext.NotJson:
        return {}

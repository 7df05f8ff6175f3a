"""Turns the content of a prompt into the text that an agent is given, and refuses what no agent would see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from acp.schema import (
    EmbeddedResourceContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from agentctl.domain.text.plaintext import plain, whole
from agentctl.errors import UsageError
from agentctl.interfaces.editor.updates.contents import fenced

#: In characters: what is longer belongs into a file.
LONGEST = 1_000_000


def prompt_text(blocks: Sequence[Any]) -> str:
    """Return the text of a prompt; what is attached to it follows.

    Raises:
        UsageError: It is empty, too long, or holds something else than text.
    """
    said = [_said(block) for block in blocks]
    attached = [text for block in blocks if (text := _attached(block))]
    text = "\n\n".join(["".join(said).strip(), *attached]).strip()
    if not text:
        raise UsageError("the prompt is empty")
    if len(text) > LONGEST:
        raise UsageError(
            f"the prompt has {len(text)} characters; at most {LONGEST} are allowed",
            hint="put it into a file, and name the file",
        )
    return whole(text).replace("\0", "�")


def _said(block: Any) -> str:
    if isinstance(block, TextContentBlock):
        return block.text
    if isinstance(block, ResourceContentBlock):
        return path_at(block.uri)
    if isinstance(block, EmbeddedResourceContentBlock) and isinstance(block.resource, TextResourceContents):
        return path_at(block.resource.uri)
    kind = plain(getattr(block, "type", "this"))
    what = "a binary resource" if kind == "resource" else f"content of the type {kind}"
    raise UsageError(f"{what} cannot be passed to an agent", hint="save it as a file, and name the file")


def _attached(block: Any) -> str:
    if not isinstance(block, EmbeddedResourceContentBlock) or not isinstance(block.resource, TextResourceContents):
        return ""
    return f"{path_at(block.resource.uri)}:\n{fenced(block.resource.text)}"


def path_at(uri: str) -> str:
    """Return the path in an address of a file; any other address as it is.

    >>> path_at("file:///src/a%20b.py"), path_at("https://example.org/")
    ('/src/a b.py', 'https://example.org/')
    """
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    return unquote(parts.path) if parts.scheme == "file" and parts.path else uri

"""Entity tags (RFC 9110, 13): what a client has is not sent again, and a part only of what it has the rest of."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b


def etag_of(data: bytes) -> str:
    """Return the tag of a content, which no other content has."""
    return f'"{blake2b(data, digest_size=16).hexdigest()}"'


def has_already(headers: Mapping[str, str], tag: str | None) -> bool:
    """Return whether a client has what it asks for, as its header `If-None-Match` says.

    Args:
        headers: Those of a request, in lower case.
        tag: That of the content; None if it has none.

    >>> has_already({"if-none-match": '"x", W/"y"'}, '"y"'), has_already({"if-none-match": "*"}, None)
    (True, True)
    """
    known = {one.strip() for one in headers.get("if-none-match", "").split(",")}
    return "*" in known or tag in {one.removeprefix("W/") for one in known}


def range_of(headers: Mapping[str, str], tag: str | None) -> str | None:
    """Return the header `Range` of a request, unless that is for another content than the one of a tag.

    >>> range_of({"range": "bytes=2-", "if-range": '"old"'}, '"new"'), range_of({"range": "bytes=2-"}, None)
    (None, 'bytes=2-')
    """
    return headers.get("range") if headers.get("if-range", tag) == tag else None

"""The descriptors of a shim, and its side of the order.

3 the order (one line of JSON, then the worker's environment, end of file), 4 its answer (one line: started, or the
error), 5 the place. End of file before a whole order means that the launcher died, and nothing is started.
"""

from __future__ import annotations

import json
import os

from agentctl.lean import Any

ORDER_FD, ANSWER_FD, PLACE_FD = 3, 4, 5


def read_order(fd: int) -> tuple[dict[str, Any], bytes] | None:
    """Return the order and the environment that a launcher wrote; None where it died before it was done."""
    data = b""
    while chunk := os.read(fd, 1 << 16):
        data += chunk
    head, mark, blob = data.partition(b"\n")
    return (json.loads(head), blob) if mark else None

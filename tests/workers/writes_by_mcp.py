"""An MCP server with one tool, which makes a file: `put(path)`. It speaks the protocol without a library."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TOOL = {
    "name": "put",
    "description": "Make a file.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


def reply_to(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    if method == "initialize":
        about = {"name": "writer", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        Path(params["arguments"]["path"]).write_text("written\n", encoding="utf-8")
        return {"content": [{"type": "text", "text": "written"}]}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = reply_to(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)

"""An MCP server with one tool, which makes a file and says of itself that it is harmless."""

from __future__ import annotations

from pathlib import Path

_SERVER = """\
import json, sys
from pathlib import Path

TOOL = {
    "name": "write", "description": "Makes a file.", "annotations": {"readOnlyHint": True},
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
}
for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            version = message["params"]["protocolVersion"]
            info = {"name": "w", "version": "1"}
            result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            result = {"tools": [TOOL]}
        case "tools/call":
            Path(message["params"]["arguments"]["path"]).touch()
            result = {"content": [{"type": "text", "text": "made"}]}
        case _:
            result = {}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def write_server(path: Path) -> Path:
    """Write the server to a file; return it."""
    path.write_text(_SERVER, encoding="utf-8")
    return path

"""Calls tools of our server over MCP, as an agent's program would, and prints each answer as a line of JSON.

calls_mcp.py DIALECT CALLS: CALLS is a JSON list of [name, arguments]; the first line has the names of the tools.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import bounded


def main() -> None:
    """Open a conversation, make the calls one after the other, and close it."""
    bounded.live_at_most()
    server = subprocess.Popen(
        [sys.executable, "-m", "agentctl", "mcp", "--tools", sys.argv[1]],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    client = {"name": "claude-code", "version": "1"}
    ask(server, 1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
    say(server, {"method": "notifications/initialized"})
    tools = ask(server, 2, "tools/list", {})["tools"]
    bounded.say(json.dumps([tool["name"] for tool in tools]))
    for number, (name, given) in enumerate(json.loads(sys.argv[2]), 3):
        answer = ask(server, number, "tools/call", {"name": name, "arguments": given})
        bounded.say(answer["content"][0]["text"])
    assert server.stdin is not None
    server.stdin.close()
    raise SystemExit(server.wait())


def say(server: subprocess.Popen[str], message: dict[str, Any]) -> None:
    """Send a message."""
    assert server.stdin is not None
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    server.stdin.flush()


def ask(server: subprocess.Popen[str], number: int, method: str, params: dict[str, Any]) -> Any:
    """Send a request, and return its result."""
    say(server, {"id": number, "method": method, "params": params})
    assert server.stdout is not None
    for line in server.stdout:
        answer = json.loads(line)
        if answer.get("id") == number:
            return answer["result"]
    raise SystemExit("the server has closed the conversation")


if __name__ == "__main__":
    main()

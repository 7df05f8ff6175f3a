"""At stake: programs that start fast do not wait for validators that nobody needs, and no other library is changed."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
from agentctl.drivers.acp import wire
from acp.schema import InitializeRequest
class Another(wire.BaseModel):
    x: int
print(InitializeRequest.__pydantic_complete__, Another.__pydantic_complete__)
print(wire.read_as_model(wire.InitializeResponse, {"protocolVersion": 1}).protocol_version)
"""


def test_validators_of_the_library_are_made_when_they_are_used() -> None:
    """In a process of its own: another test may have loaded the library before."""
    told = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.split() == ["False", "True", "1"]

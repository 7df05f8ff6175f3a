"""An agent's own server has the variables of its worker, even where the agent's program passes on hardly any."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from agentctl.domain.agent.own_tools import INHERIT_VARIABLE
from tests.steps import new_task
from tests.support import run

#: What a program does that starts a server with a few variables; what the server has then is its output.
STARTS = """
import json, os, subprocess, sys
names = json.loads(sys.argv[1])
environ = {name: os.environ[name] for name in names} | {"HOME": "/elsewhere"} | json.loads(sys.argv[2])
tells = '''
import json, os
from agentctl.interfaces.mcp.worker_environment import complete_environment
complete_environment()
print(json.dumps(dict(os.environ)))
'''
done = subprocess.run([sys.executable, "-c", tells], env=environ, capture_output=True, text=True, check=True)
open("had.json", "w").write(done.stdout)
"""
IDENTITY = ["AGENTCTL_ROOT", "AGENTCTL_TASK", "AGENTCTL_INSTANCE"]


@pytest.mark.parametrize("is_told", [True, False])
def test_a_server_that_is_told_to_has_what_its_worker_was_started_with(root: Path, is_told: bool) -> None:
    new_task()
    more = json.dumps({INHERIT_VARIABLE: "1"} if is_told else {})
    run("spawn", "--name", "a1", "--", sys.executable, "-c", STARTS, json.dumps(IDENTITY), more, env={"KEY_OF_IT": "k"})
    run("wait", "a1")
    had = json.loads(Path("had.json").read_bytes())
    assert (had.get("KEY_OF_IT"), had["HOME"]) == ("k" if is_told else None, "/elsewhere")
    assert INHERIT_VARIABLE not in had
    assert had["AGENTCTL_INSTANCE"] == "a1"

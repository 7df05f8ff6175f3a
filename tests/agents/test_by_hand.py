"""At stake: an agent in a person's own session answers no request for permission, whatever it does to its environment.

The programs are started as a person starts them, without agentctl: they ask nobody about their commands here.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.agents.lab import PATIENCE_S, Lab
from tests.agents.test_asking_a_person import OURS, answered
from tests.by_hand import VARIABLES
from tests.support import environment

#: What a person types for one prompt, with nobody asked.
LINES = {
    "claude": ["claude", "-p", "--permission-mode=bypassPermissions"],
    "codex": ["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"],
    "opencode": ["opencode", "run"],
    "qwen": ["qwen", "--approval-mode=yolo", "-p"],
    "claude-agent-acp": ["--agent", "claude-agent-acp"],
}
BY_HAND = pytest.mark.parametrize("program", LINES)


@BY_HAND
def test_a_session_by_hand(lab: Lab, program: str, client: list[str]) -> None:
    """An agent that a person has started by hand allows by a shell, without the variables of its program: refused."""
    lab.spawn("ask=asked.txt", name="asks", driver="llm")
    lab.question("asks")
    unset = " ".join(f"-u {name}" for name in VARIABLES)
    ways = [f"env {unset} {OURS}", f"exec env {unset} {OURS}", f"sh -c 'exec setsid -w env {unset} {OURS} \"$@\"' sh"]
    said = lab.folder / "said.txt"
    tries = "".join(f"({way} interact respond asks --id q1 allow) >> {said} 2>&1\n" for way in ways)
    (lab.folder / "tries.sh").write_text(tries, encoding="utf-8")
    (lab.work / "steps.json").write_text(json.dumps([[["shell", f"sh {lab.folder}/tries.sh"]]]), encoding="utf-8")
    environ = environment({**lab.environ(), "IS_SANDBOX": "1"})
    if program == "claude-agent-acp":  # Without settings it has a model decide, and no such model is here.
        settings = lab.folder / "claude" / "settings.json"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text('{"permissions": {"defaultMode": "default", "allow": ["Bash"]}}', encoding="utf-8")
    prompt = "SCENARIO:steps=steps.json"
    over_acp = program.endswith("-acp")
    line = [*client, "--approve-all", *LINES[program], "exec", prompt] if over_acp else [*LINES[program], prompt]
    done = subprocess.run(
        line, env=environ, cwd=lab.work, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    told = said.read_text(encoding="utf-8") if said.exists() else ""
    assert told.count("an agent may deny it") == len(ways), (told, done)
    assert answered(lab, "asks") == []
    assert not Path("asked.txt").exists()
    lab.respond("asks", "deny")
    lab.end("asks")

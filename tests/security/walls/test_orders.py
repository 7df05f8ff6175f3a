"""At stake: what is run outside of a sandbox is what was spawned, whatever is changed in the task meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.supervision.worker import environment
from tests.agent_steps import agent, agent_world, ends, plays
from tests.steps import Task, held, new_task, spawn_batch
from tests.support import REPOSITORY, run


def change(task: Task, instance: str, **fields: Any) -> None:
    """Write something else into the order of a worker, as a process in a sandbox may where the root is no wall."""
    file = task.agent(instance) / "spec.json"
    file.write_text(json.dumps({**json.loads(file.read_bytes()), **fields}), encoding="utf-8")


@pytest.fixture
def queue(root: Path, tmp_path: Path) -> Task:
    """A task in which two workers wait for a third, with one environment, until there is a file `gate`."""
    task = new_task(cap=1)
    spawn_batch([held(tmp_path / "gate", "first"), *({"name": name, "argv": ["touch", name]} for name in "ab")])
    return task


def test_an_order_that_was_changed_in_the_queue_is_not_carried_out(queue: Task, tmp_path: Path) -> None:
    change(queue, "a", argv=["touch", "PWNED"])
    (tmp_path / "gate").touch()
    queue.ended("first", "a", "b")
    told = queue.exit("a")
    assert told is not None
    assert (told["reason"], "was changed since" in told["message"]) == ("not_started", True)
    assert (Path("PWNED").exists(), Path("b").exists()) == (False, True), "and the next one is"


def test_a_worker_that_nobody_spawned_gets_no_waiting_environment(queue: Task, tmp_path: Path) -> None:
    evil = queue.agent("evil")
    evil.mkdir()
    (evil / "spec.json").write_bytes((queue.agent("a") / "spec.json").read_bytes())
    change(queue, "evil", agentInstance="evil", argv=["touch", "PWNED"])
    token = next((queue.path / "queue").iterdir()).name.split(".")[2]
    (queue.path / "queue" / f"0000.000000000001.{token}.r.t1.evil").touch()
    (tmp_path / "gate").touch()
    queue.ended("first", "a", "b")
    assert not Path("PWNED").exists()


def test_what_is_resumed_is_carried_out_as_it_is_then_and_not_as_it_is_later(queue: Task, tmp_path: Path) -> None:
    for blob in (tmp_path / "run" / "agentctl").iterdir():
        blob.unlink()
    assert run("resume-queue", "--json").json == ["a", "b"]
    change(queue, "a", argv=["touch", "PWNED"])
    (tmp_path / "gate").touch()
    queue.ended("first", "a", "b")
    assert (Path("PWNED").exists(), Path("b").exists()) == (False, True)


def test_an_agents_order_is_the_one_that_its_shim_has_looked_at(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program that drives it reads the file again."""
    task = agent_world(tmp_path, monkeypatch)
    agent(plays(tmp_path, "import os\nme.answer(' '.join(os.environ))"))
    assert "AGENTCTL_SPEC_DIGEST" not in ends()["result"]["finalMessage"], "the agent has no business with it"
    order = json.loads((task.agent("a") / "spec.json").read_bytes())["order"]
    change(task, "a", order={**order, "program": "/bin/false"})
    driving = [
        sys.executable,
        "-I",
        "-S",
        str(REPOSITORY / "agentctl" / "worker_programs/agent_host/__main__.py"),
        "claude",
    ]
    given = {**os.environ, "AGENTCTL_AGENT_DIR": str(task.agent("a")), "AGENTCTL_SPEC_DIGEST": "0" * 32}
    driven = subprocess.run(driving, env=given, capture_output=True, text=True, check=False, timeout=20)
    assert (driven.returncode != 0, "was changed since its worker was started" in driven.stderr) == (True, True)


VARIABLES = st.dictionaries(st.binary(max_size=4).filter(lambda name: not {0, 61} & {*name}), st.binary(max_size=40))
DIGESTS = st.lists(st.text("0123456789abcdef", min_size=32, max_size=32), max_size=3)


@given(variables=VARIABLES, digests=DIGESTS, other=st.text("0123456789abcdef", min_size=32, max_size=32))
def test_an_environment_vouches_for_its_orders_alone(
    variables: dict[bytes, bytes], digests: list[str], other: str
) -> None:
    """Whatever its variables are called and hold: an agent that starts something may choose them."""
    variables = {name: value.replace(b"\0", b"") for name, value in variables.items()}
    variables |= {b"": other.encode(), b"X": f"={other}".encode()}
    blob = environment.with_orders(environment.pack(variables), digests)
    assert all(environment.vouches_for(blob, digest) for digest in digests)
    assert environment.vouches_for(blob, other) == (other in digests)
    assert environment.unpack(blob) == {name: value for name, value in variables.items() if name}

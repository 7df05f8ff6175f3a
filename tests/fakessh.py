"""A program called `ssh` first on PATH, and the hosts of a person: for tests of what ssh may do, without a network."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

#: Starts the far end as ssh would; its folder and its files are those of this test, unless `env` says otherwise.
FAR_END = f"{sys.executable} -m agentctl _far"


def put_ssh(folder: Path, script: str) -> None:
    """Put an `ssh` first on PATH, until the end of the test (`as_found` of conftest.py)."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "ssh"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    if not os.environ["PATH"].startswith(f"{folder}:"):
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


def put_ssh_in_python(folder: Path, code: str) -> None:
    """Put an `ssh` first on PATH that is a program in Python, with the frames at hand as `frames`."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "fake_ssh.py"
    head = (
        "import os, sys, time\n"
        "from agentctl.interfaces.hosts import frames\n"
        "from agentctl.interfaces.hosts.frames import frame\n"
    )
    tail = "\ndef say(data):\n    while data:\n        data = data[os.write(1, data):]\n"
    program.write_text(f"{head}{tail}{code}\n", encoding="utf-8")
    put_ssh(folder, f'exec {sys.executable} {program} "$@"')


def define_hosts(hosts: Mapping[str, object]) -> Path:
    """Write `hosts` into the user's config.yaml."""
    file = Path(os.environ["HOME"], ".config", "agentctl", "config.yaml")
    file.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    file.write_text(yaml.safe_dump({"hosts": dict(hosts)}), encoding="utf-8")
    file.chmod(0o600)
    return file

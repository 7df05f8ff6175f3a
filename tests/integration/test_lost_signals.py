"""At stake: Ctrl-C counts wherever it strikes, also in a piece of code out of which Python raises nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.steps import new_task, statuses
from tests.support import run, worker

#: Sends the process a signal within the finalizer of an object, once it imports a module.
DEAF = """
import os, sys

class Deaf:
    def __del__(self):
        os.kill(os.getpid(), {number})
        for _ in range(100_000):  # Python calls the handler in here.
            pass

def strike(event, args, done=[]):
    if event == 'import' and args[0] == '{module}' and not done:
        done.append(True)
        Deaf()

sys.addaudithook(strike)
"""


def deaf(folder: Path, module: str, number: int = signal.SIGINT) -> dict[str, str]:
    """Return the environment of a command that is struck when it imports a module."""
    (folder / "sitecustomize.py").write_text(DEAF.format(module=module, number=int(number)))
    return {"PYTHONPATH": str(folder)}


def test_a_wait_ends_by_it(root: Path, tmp_path: Path) -> None:
    new_task()
    struck = deaf(tmp_path, "agentctl.operations.wait.waiting")
    done = run("spawn", "--wait", "--name", "w", "--", *worker("sleeps", 60), check=False, env=struck)
    assert (done.code, done.err.splitlines()[0]) == (130, "interrupted: w left running in t1")
    assert statuses() == {"w": "running"}
    done = run("wait", "w", check=False, env=struck)
    assert (done.code, done.out, done.err) == (130, "", "interrupted\n")
    run("cancel", "w")


def test_what_is_no_signal_is_told_as_ever() -> None:
    program = (
        "from agentctl.interfaces.cli.lost_signals import send_lost_again\n"
        "send_lost_again()\n"
        "class Odd:\n"
        "    def __del__(self):\n"
        "        raise ValueError('odd')\n"
        "Odd()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "ValueError: odd"


def test_a_handler_that_ends_the_program_does_so() -> None:
    program = (
        "import os, signal, sys, time\n"
        "from agentctl.interfaces.cli.lost_signals import send_lost_again\n"
        "send_lost_again()\n"
        "signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))\n"
        "class Deaf:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        for _ in range(100_000):\n"
        "            pass\n"
        "Deaf()\n"
        "time.sleep(60)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGTERM, "")

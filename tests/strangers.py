"""Starts unrelated processes, which agentctl must not signal and which record every signal that they get."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil

from tests.life import known, living, stands, state_of

#: A session leader and its child, which share a process group and write down every signal that reaches them.
WATCHES = """
import os, signal, sys
signal.alarm(100)
def note(number, _): os.write(3, f"{os.getpid()} got {number}\\n".encode())
os.dup2(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND), 3)
for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGALRM, signal.SIGCHLD}:
    signal.signal(number, note)
child = os.fork()
if child: print(child, flush=True)
else: signal.alarm(100)
while True: signal.pause()
"""


class Strangers:
    """Two unrelated processes that agentctl must not signal."""

    def __init__(self, notes: Path) -> None:
        argv = [sys.executable, "-c", WATCHES, str(notes)]
        self._process = subprocess.Popen(argv, start_new_session=True, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.leader, self.child = known(self._process.pid), known(int(self._process.stdout.readline()))
        self._notes = notes

    def stop(self) -> None:
        """Stop the leader, as Ctrl-Z does to an editor."""
        psutil.Process(self.leader.pid).send_signal(signal.SIGSTOP)
        stands(self.leader.pid)

    def are_untouched(self, leader: str = "S") -> None:
        """Check that both live and were never signalled, and that the leader is in the given state (S: it sleeps)."""
        assert living([self.leader, self.child]) == [self.leader, self.child]
        assert [state_of(one.pid) for one in (self.leader, self.child)] == [leader, "S"]
        assert self._notes.read_text(encoding="ascii") == ""

    def end(self) -> None:
        for one in (self.child, self.leader):
            psutil.Process(one.pid).kill()
        self._process.communicate()

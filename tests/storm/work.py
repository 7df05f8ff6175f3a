"""Who works in a storm, and what is done to them: commands, agents over two drivers, kept and parked ones."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable

import psutil

from tests.processes import words_of
from tests.storm.world import GRACE_S, World
from tests.support import worker

_GRACE = ("--grace-seconds", str(GRACE_S))
#: Keys of accounts that only agents which are to be parked use: a used-up one holds up no other agent.
_ACCOUNTS = 3


class Work:
    """What people and programs do with the task."""

    def __init__(self, world: World) -> None:
        self._world, self._chance = world, world.chance("work")
        self.weights: dict[Callable[[], None], float] = {
            self.spawn: 8, self.batch: 1, self.agent: 3, self.keep: 1.5, self.say: 3, self.close: 1, self.park: 1,
            self.cancel: 2, self.cancel_all: 0.3, self.pause: 1, self.unpause: 2, self.look: 3, self.wait: 2,
            self.kill_shim: 1, self.kill_worker: 1, self.kill_command: 2,
        }  # fmt: skip

    def act(self) -> str:
        """Do one thing, and go on before it is done; return what it was."""
        [deed] = self._chance.choices(list(self.weights), weights=list(self.weights.values()))
        deed()
        return deed.__name__

    def spawn(self) -> None:
        """A command that keeps account of itself."""
        options = [] if self._chance.random() < 0.2 else ["--queue"]
        if self._world.names and self._chance.random() < 0.15:
            options += ["--after", self._somebody(), "--after-any"]
        argv = self._counted()
        self._world.command("spawn", "--json", *options, "--name", self._world.new_name("w"), "--", *argv)

    def batch(self) -> None:
        """Several of them by one command."""
        file = self._world.folder / f"batch-{len(self._world.names)}.jsonl"
        rows = [{"name": self._world.new_name("b"), "argv": self._counted()} for _ in range(5)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        self._world.command("spawn", "--json", "--batch", file)

    def _counted(self) -> list[str]:
        seconds, code = self._chance.choice([0, 0.2, 0.5, 2]), self._chance.choice([0, 0, 0, 3])
        more = ["--stubborn"] if self._chance.random() < 0.2 else []
        return worker("counted", self._world.ledger, seconds, code, *more)

    def agent(self) -> None:
        """An agent of one turn."""
        self._agent(self._chance.choice(["claude", "codex"]), "a")

    def keep(self) -> None:
        """An agent that is kept after its turn."""
        self._agent("claude", "k", "--keep")
        self._world.kept.append(self._world.names[-1])

    def _agent(self, driver: str, prefix: str, *options: str) -> None:
        chosen = ["--agent", "general", "--driver", driver, "--permissions", "allow", "--queue", *options]
        name = self._world.new_name(prefix)
        self._world.command("spawn", "--json", *chosen, "--name", name, f"play {self._world.turn_of(driver)}")

    def say(self) -> None:
        """Send a kept agent its next turn."""
        if self._world.kept:
            name = self._chance.choice(self._world.kept)
            self._world.command("send", name, f"play {self._world.turn_of('claude')}")

    def close(self) -> None:
        """Let a kept agent end."""
        if self._world.kept:
            name = self._chance.choice(self._world.kept)
            self._world.command("send", name, "--close")

    def park(self) -> None:
        """An agent whose account is used up in the middle of its work."""
        name, seconds = self._world.new_name("p"), self._chance.choice([2, 9000])
        account = f"ANTHROPIC_API_KEY=of-{self._chance.randrange(_ACCOUNTS)}"
        prompt = f"stopped {seconds} {self._world.folder / f'tries-{name}'}"
        chosen = ["--agent", "general", "--queue", "--env", account]
        self._world.command("spawn", "--json", *chosen, "--name", name, prompt)

    def cancel(self) -> None:
        """Cancel somebody who may be anywhere in its life."""
        name = self._somebody()
        self._world.cancelled.add(name)
        self._world.command("cancel", name, *_GRACE)

    def cancel_all(self) -> None:
        """Cancel everybody."""
        self._world.cancelled.update(self._world.names)
        self._world.command("cancel", "--all", *_GRACE)

    def pause(self) -> None:
        """Stop somebody."""
        self._world.command("pause", self._somebody())

    def unpause(self) -> None:
        """Continue somebody."""
        self._world.command("unpause", self._somebody())

    def look(self) -> None:
        """Look, or ask the doctor."""
        views = [["list", "--json"], ["tasks"], ["doctor"], ["usage"], ["why", self._somebody()], ["tree"]]
        self._world.command(*self._chance.choice(views))

    def wait(self) -> None:
        """Wait for a while; the queue goes on under it."""
        self._world.command("wait-any", "--timeout-seconds", "2")

    def kill_command(self) -> None:
        """SIGKILL a command, whatever it is doing."""
        self._kill([psutil.Process(ran.process.pid) for ran in self._world.running()])

    def kill_shim(self) -> None:
        """SIGKILL a shim of this task, between two workers too."""
        found = [one for one in self._world.mine(psutil.process_iter()) if _is_shim(one)]
        self._world.kills["lost"] += self._kill(found)

    def kill_worker(self) -> None:
        """SIGKILL the first process of a worker."""
        found = []
        for file in sorted(self._world.task.path.glob("agents/*/worker.json")):
            try:
                process = psutil.Process(json.loads(file.read_bytes())["pid"])
                if process.environ().get("AGENTCTL_TASK") == self._world.task.path.name:
                    found.append(process)
            except (psutil.Error, ValueError, OSError):
                continue
        self._world.kills["signal"] += self._kill(found)

    def _kill(self, processes: list[psutil.Process]) -> bool:
        if not processes:
            return False
        try:
            self._chance.choice(processes).send_signal(signal.SIGKILL)
        except psutil.Error:
            return False  # it has ended meanwhile
        return True

    def _somebody(self) -> str:
        return self._chance.choice(self._world.names)


def _is_shim(process: psutil.Process) -> bool:
    return any("agentctl/shim/" in word for word in words_of(process))

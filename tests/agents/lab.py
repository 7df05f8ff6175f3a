"""One agent program, its stand-in model, and a task, used as a person would use them: by the command line."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from tests import leaks, support
from tests.agents.conversation import Request
from tests.agents.facts import FACTS
from tests.agents.scenarios import done
from tests.agents.standin import StandIn
from tests.agents.surroundings import environ_of, write_providers
from tests.processes import words_of
from tests.steps import Task
from tests.support import Completed, is_alive, run, text_in, wait_for_text, wait_until

#: An agent's own start and end, on a machine that does other things too.
PATIENCE_S = 60


class Lab:
    """What the tests do with one agent program."""

    def __init__(self, program: str, folder: Path, task: Task, standin: StandIn) -> None:
        self.program, self.folder, self.task, self.standin = program, folder, task, standin
        self.facts = FACTS[program]
        self.work = Path.cwd()
        #: What an agent of a plain model gets where it names none.
        self.model = "standin/stand-in"
        #: What else a test has set in the environment of its program.
        self.variables: Mapping[str, str | None] = {}
        #: The open questions of all workers, and how long all logs were before they were listed.
        self._questions: list[dict[str, Any]] = []
        self._listed_at = -1

    def environ(self, retries: int = 1) -> dict[str, str | None]:
        """Return what the program needs in its environment, and write its configuration."""
        config = Path(os.environ["HOME"]) / ".config" / "agentctl"
        write_providers(config, self.standin.url, self.model, retries)
        return {**environ_of(self.folder, self.standin.url, retries), **self.variables}

    def configure(self, **limits: float) -> None:
        """Set limits of the task, as a person would in an editor."""
        file = self.task.path / "task.yaml"
        text = file.read_text(encoding="utf-8")
        told = ", ".join(f"{name}: {value}" for name, value in limits.items())
        draft = file.with_name("task.yaml.edited")
        draft.write_text(text.replace("config: {", f"config: {{{told}, ", 1), encoding="utf-8")
        draft.rename(file)

    # -- what a person does ------------------------------------------------------------------------------------

    def spawn(
        self,
        scenario: str,
        *options: str,
        agent: str = "general",
        name: str = "a1",
        driver: str | None = None,
        retries: int = 1,
    ) -> str:
        """Start a worker of the program (or of another) that plays a scenario; return its name."""
        chosen = ["--agent", agent, "--driver", driver or self.program, "--name", name]
        told = run("spawn", "--json", *chosen, *options, f"SCENARIO:{scenario}", env=self.environ(retries))
        return str(told.json["agentInstance"])

    def resume(self, instance: str, scenario: str, *options: str) -> str:
        """Continue an ended worker; return the name of the new one."""
        told = run("resume", "--json", instance, *options, f"SCENARIO:{scenario}", env=self.environ())
        return str(told.json["agentInstance"])

    def send(self, instance: str, scenario: str, *options: str) -> None:
        """Send a message to a worker."""
        run("send", *options, instance, f"SCENARIO:{scenario}")

    def end(self, instance: str) -> dict[str, Any]:
        """Wait for the end of a worker; return what `wait` tells."""
        ended: dict[str, Any] = run("wait", "--json", instance, check=False, timeout=PATIENCE_S).json
        return ended

    def completed(self, instance: str) -> str:
        """Wait for the natural end of a worker; return its final message."""
        ended = self.end(instance)
        assert ended["status"] == "completed", f"{ended}\n{self.account(instance)}"
        return self.final(instance)

    def failed(self, instance: str) -> str:
        """Wait for the failure of a worker; return the reason."""
        ended = self.end(instance)
        assert ended["status"] == "failed", f"{ended}\n{self.account(instance)}"
        return str(ended["reason"])

    def denied(self, instance: str, said: str = done("ask", 1)) -> None:
        """Wait for the end of a worker whose only call was denied: its model goes on and says this, or that ends it."""
        if self.facts.ends_when_denied:
            assert self.failed(instance) == "permission_denied"
        else:
            assert self.completed(instance) == said

    def question(self, instance: str) -> dict[str, Any]:
        """Wait until a worker has asked something; return the question as any terminal lists it."""
        return self._question(instance, lambda _: True)

    def question_of_sub_agent(self, instance: str) -> dict[str, Any]:
        """Wait until a sub-agent has asked something: a program may name the sub-agent after it has asked."""
        return self._question(instance, lambda question: "askedBy" in question)

    def _question(self, instance: str, is_meant: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        self.task.has("interaction.requested", instance, timeout_s=PATIENCE_S)
        found = wait_until(
            lambda: self.open_questions(instance), what="the question", accept=lambda open_: any(map(is_meant, open_))
        )
        return next(filter(is_meant, found))

    def respond(self, instance: str, answer: str) -> Completed:
        """Answer the open question of a worker."""
        return run("interact", "respond", instance, "--id", self.open_questions(instance)[0]["id"], answer)

    def cancel(self, instance: str) -> None:
        """Cancel a worker; a second later nothing of it is alive. Its shim may take a busy machine's time to leave."""
        told = run("cancel", "--json", instance, timeout=PATIENCE_S).json
        assert (told["cancelled"], told["status"], told["survivors"]) == (True, "cancelled", []), told
        wait_until(self._all_but_shims, timeout_s=1, what="nothing to be alive", accept=lambda left: not left)
        wait_until(self.processes, what="no shim to be alive", accept=lambda left: not left)

    def _all_but_shims(self) -> list[psutil.Process]:
        return [process for process in self.processes() if "/agentctl/shim/" not in " ".join(words_of(process))]

    def kill(self, instance: str, victims: str) -> None:
        """SIGKILL the driver of a worker, or all of it with its shim, and wait until that is seen."""
        driver = psutil.Process(self.leader(instance))
        if victims == "the driver":
            self.kill_all([driver])
        else:
            self.crash()
        assert self.failed(instance) in {"signal", "lost"}

    def kill_all(self, processes: Sequence[psutil.Process]) -> None:
        """SIGKILL processes; some of them end because others do."""
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        wait_until(lambda: [one for one in processes if is_alive(one.pid)], accept=lambda left: not left, what="death")

    def crash(self) -> None:
        """SIGKILL all that runs, at one moment: a crash leaves nothing that could tell how something else has ended."""
        stopped: list[psutil.Process] = []
        while found := [one for one in self.processes() if one not in stopped]:  # Also what was forked meanwhile.
            for process in found:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.suspend()
            stopped += found
        self.kill_all(stopped)

    # -- what a person can look at -----------------------------------------------------------------------------

    def result(self, instance: str) -> dict[str, Any]:
        """Return what the worker has declared."""
        value: dict[str, Any] = json.loads((self.task.agent(instance) / "result.json").read_bytes())
        return value

    def final(self, instance: str) -> str:
        """Return the final message of a worker."""
        return str(self.result(instance).get("finalMessage"))

    def activity(self, instance: str, kind: str | None = None) -> list[dict[str, Any]]:
        """Return the rows of a worker's activity, of one type where it is named."""
        file = self.task.agent(instance) / "activity.jsonl"
        lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
        rows = [json.loads(line) for line in lines]
        return [row for row in rows if kind in {None, row["type"]}]

    def role(self, agent: str) -> str:
        """Return the first line of the instructions in a definition."""
        shown = run("agents", "show", agent, "--json").json
        return str(shown["definition"]["instructions"]).splitlines()[0]

    def has_role(self, request: Request, agent: str) -> bool:
        """Whether the model was told the role of a definition where the program has it go."""
        said = [text for kind, text in request.turns if kind == "user"]
        return self.role(agent) in (request.system if self.facts.role_is_system else "\n".join(said))

    def session(self, instance: str) -> str:
        """Return the vendor's session of a worker, once the program has written down what its model has said."""
        session = str(json.loads((self.task.agent(instance) / "session.json").read_bytes())["session"])
        if self.program == "llm":
            task_id, _, name = session.partition("/")
            assert task_id == self.task.path.name
            file = self.task.agent(name) / "conversation.jsonl"
            wait_for_text(file, "I call a tool.")
            return session
        pattern = self.facts.sessions.format(session=session)
        wait_until(
            lambda: [file for file in self.folder.glob(pattern) if "I call a tool." in text_in(file)],
            what=f"the session {session} to be written down",
        )
        return session

    def ends_of_sub_agents(self, instance: str) -> dict[str, str]:
        """Return id -> status of the sub-agents that have ended."""
        return {row["id"]: row["status"] for row in self.activity(instance, "agent") if row["phase"] == "end"}

    def answered(self, scenario: str) -> Request:
        """Return the newest request of a conversation in this scenario; one without tools is for a title."""
        return next(one for one in reversed(self.standin.requests) if one.tools and one.scenario[0] == scenario)

    def in_tool(self, instance: str) -> None:
        """Wait until a tool that takes its time runs, and the worker's activity tells of one."""
        wait_until(lambda: self.runs("tail", "/dev/null"), timeout_s=PATIENCE_S, what="the tool to run")
        wait_until(lambda: self.activity(instance, "tool") or self.activity(instance, "agent"), what="its row")

    def arrived(self, scenario: str) -> None:
        """Wait until the stand-in was asked by a conversation that is in this scenario."""
        wait_until(
            lambda: [request.scenario[0] for request in self.standin.requests],
            timeout_s=PATIENCE_S,
            what=f"a request of {scenario}",
            accept=lambda scenarios: scenario in scenarios,
        )

    def processes(self) -> list[psutil.Process]:
        """Return every process of this test but the test itself."""
        marks = leaks.Marks(test_id=os.environ[support.TEST_ID], folder=self.folder, before=frozenset())
        return leaks.survivors(marks)

    def runs(self, *words: str) -> bool:
        """Whether a process of this test has all these words in its command line."""
        lines = [" ".join(words_of(process)) for process in self.processes()]
        return any(all(word in line for word in words) for line in lines)

    def open_questions(self, instance: str) -> list[dict[str, Any]]:
        """Return the questions of a worker that any terminal lists; they are listed anew when a log has grown."""
        size = sum(file.stat().st_size for file in self.task.path.parent.glob("*/events.jsonl"))
        if size != self._listed_at:
            self._questions, self._listed_at = run("interact", "list", "--json").json, size
        return [row for row in self._questions if row["agentInstance"] == instance]

    def leader(self, instance: str) -> int:
        """Return the pid of the driver: the first process of a worker."""
        return int(json.loads((self.task.agent(instance) / "worker.json").read_bytes())["pid"])

    def program_of(self, instance: str) -> int:
        """Return the pid of the agent program: what the driver has started."""
        return psutil.Process(self.leader(instance)).children()[0].pid

    def account(self, instance: str) -> str:
        """Return what is known of a worker, for whoever reads a failure."""
        folder = self.task.agent(instance)
        files = [folder / name for name in ("exit.json", "result.json", "stderr.log", "activity.jsonl")]
        texts = [f"{file.name}: {file.read_text(errors='replace')[-1500:]}" for file in files if file.exists()]
        return "\n".join([*texts, f"requests that the stand-in does not know: {self.standin.strays}"])


def option(question: Mapping[str, Any], kind: str) -> str:
    """Return the vendor's answer that allows or denies once."""
    words = {"allow": ("allow", "accept"), "deny": ("deny", "decline")}[kind]
    return next(str(offered["id"]) for word in words for offered in question["options"] if offered["id"] == word)

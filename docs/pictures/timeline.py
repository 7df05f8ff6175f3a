"""Makes timeline.svg beside it: a real run, in a folder of its own, with real processes.

    python docs/pictures/timeline.py

Its agents are run by the driver of Claude Code. Only the model is a stand-in, which does in seconds what the last line
of its prompt says: `work SECONDS TOKENS`, `ask QUESTION`, `limit SECONDS` (of its account) or `fails SECONDS`.
"""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2] / "tests" / "workers"), str(HERE.parent)]

from stage import after, agent, agentctl, command, stage  # type: ignore[import-not-found]  # noqa: E402

from agent_program import MODEL, Program  # type: ignore[import-not-found]  # noqa: E402

_CHILDREN = """
agentctl spawn --queue --name docs-api --agent explore 'work 1.9 34000'
agentctl spawn --queue --name docs-web --agent explore 'work 2.6 41000'
agentctl wait docs-api docs-web && sleep 0.4
"""


class StandIn(Program):  # type: ignore[misc]
    """The stand-in for a model."""

    def do_work(self, rest: str) -> None:
        """Take some time and tokens."""
        seconds, tokens = rest.split()
        time.sleep(float(seconds))
        self.done(int(tokens))

    def do_ask(self, rest: str) -> None:
        """Take some time, ask, and go on with the answer."""
        time.sleep(0.9)
        options = [{"label": "yes", "description": "go on"}, {"label": "no", "description": "stop"}]
        one = {"question": rest, "header": "Plan", "options": options, "multiSelect": False}
        self.ask("AskUserQuestion", {"questions": [one]}, self.go_on)

    def go_on(self, _answer: dict[str, Any]) -> None:
        """Use the answer."""
        time.sleep(1)
        self.done(48_000)

    def do_limit(self, rest: str) -> None:
        """Be stopped by the limit of the account."""
        time.sleep(1.6)
        self.stop(float(rest))

    def do_You(self, _rest: str) -> None:  # noqa: N802 - the first word of the prompt to go on
        """Go on after the limit."""
        time.sleep(2.4)
        self.done(212_000)

    def done(self, tokens: int) -> None:
        """Answer, and report what was used."""
        out = tokens // 9
        used = {"inputTokens": tokens - out, "outputTokens": out, "cacheReadInputTokens": 4 * tokens}
        self.result("Done.", model_usage_since_last_result={MODEL: {**used, "costUSD": tokens * 4.1e-6}})


def run(folder: Path) -> None:
    """Let the workers run, and answer the question."""
    agentctl("new", "Passkeys: plan, build, review, ship", "--id", "passkeys", "--max-concurrent", "5")
    command("checkout", "sleep 0.8")
    agent("map", "explore", "work 2.3 61000", *after("checkout"))
    agent("plan", "plan", "ask Store passkeys beside passwords?", *after("map"))
    agent("api", "general", "work 4.2 305000", *after("plan"))
    agent("web", "general", "limit 2.2", *after("plan"))
    third_time = "echo x >>tries; sleep 1.1; test $(wc -l <tries) = 3"
    command("migrate", third_time, *after("plan"), "--retries", "3", "--retry-delay-seconds", "0.5")
    command("docs", _CHILDREN, *after("plan"))
    command("licences", "sleep 1.2; exit 1", *after("checkout"))
    command("unit", "sleep 2.1", *after("api", "migrate"))
    command("e2e", "sleep 2.7", *after("api", "web", "migrate"))
    agent("review", "explore", "work 2.2 96000", *after("api", "web"))
    command("ship", "sleep 1", *after("unit", "e2e", "review", "docs"))
    agentctl("wait-any", "plan", "--for", "blocked")
    time.sleep(1.7)
    agentctl("interact", "respond", "plan", "yes")
    agentctl("wait-all", check=False)
    agentctl("timeline", "--svg", str(folder / "timeline.svg"))
    shutil.copyfile(folder / "timeline.svg", HERE.with_name("timeline.svg"))
    agentctl("timeline")


def main() -> None:
    """Make the picture, or be the agent program in it."""
    if sys.argv[1:2] == ["as-model"]:
        StandIn().run()
        return
    with stage("webapp", HERE) as folder:
        run(folder)


if __name__ == "__main__":
    main()

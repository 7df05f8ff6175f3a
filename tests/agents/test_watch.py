"""What the screen shows of real agent programs: every nested call in its place, live and after a restart."""

from __future__ import annotations

from agentctl.domain.question import ALLOW
from agentctl.domain.states import TERMINAL
from agentctl.interfaces.screen.fleet.lines import NodeId
from agentctl.interfaces.words.question_pieces import options_of
from tests.agents.lab import PATIENCE_S, Lab
from tests.screens import Screen, watching
from tests.support import run


async def opened(screen: Screen, agent: str) -> list[tuple[str, int]]:
    """Open a worker and every group in it; return the items below it as the list has them: (id, depth)."""
    await screen.go_to(agent)
    listed = screen.app.fleet_list
    await screen.until(lambda: listed.line is not None and listed.line.is_folded is not None, "a worker that opens")
    if listed.line is not None and listed.line.is_folded:
        await screen.press("l")
    await screen.until(lambda: any(isinstance(line.key, NodeId) for line in listed.lines), "a call below it")
    while folded := next((line for line in listed.lines if line.is_folded and isinstance(line.key, NodeId)), None):
        assert listed.go_to_key(folded.key)
        await screen.press("l")
    await screen.go_to(agent)
    return items(screen)


def items(screen: Screen) -> list[tuple[str, int]]:
    """Return the items of the list: (id, depth)."""
    lines = screen.app.fleet_list.lines
    return [(line.key.node, line.depth) for line in lines if isinstance(line.key, NodeId)]


def items_of_tree(agent: str) -> list[tuple[str, int]]:
    """Return what `tree` has below a worker: (id, depth)."""
    (worker,) = run("tree", agent, "--expand", "all", "--json").json["workers"]
    return [(item["id"], item["depth"]) for item in worker["items"]]


def test_nested_calls(lab: Lab) -> None:
    """On the screen: a nested call in its place, its request answered by a digit, the same after a restart."""
    agent = lab.spawn("subagent=ask")
    lab.question(agent)

    async def answer(screen: Screen) -> None:
        await screen.shows("needs you 1")
        before = await opened(screen, agent)
        assert before == items_of_tree(agent)
        assert max(depth for _, depth in before) >= 2, "the call stands below the sub-agent that makes it"
        listed = screen.app.fleet_list
        assert listed.worker is not None
        question = listed.worker.questions[0]
        allowing = [question.meaning(id_) == ALLOW for id_, _ in options_of(question)].index(True) + 1
        await screen.shows(str(question.tool), "asks for permission")
        await screen.press("ctrl+d", "ctrl+d", "ctrl+d")
        await screen.settle()
        await screen.press(str(allowing))
        await screen.shows(f"{agent} was answered")
        await screen.until(
            lambda: listed.worker is not None and listed.worker.row["status"] in TERMINAL, "the end", PATIENCE_S
        )
        assert await opened(screen, agent) == items_of_tree(agent)

    async def look_again(screen: Screen) -> None:
        await screen.shows("ready for review 1")
        assert await opened(screen, agent) == items_of_tree(agent)

    watching(answer, size=(120, 40))
    assert lab.completed(agent).startswith("Done: subagent")
    watching(look_again, size=(120, 40))

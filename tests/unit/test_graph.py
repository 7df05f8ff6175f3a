"""At stake: workers that wait for each other would wait for ever: each cycle is found and named, and nothing else."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctl.domain.tree.graph import check_no_cycle
from agentctl.errors import UsageError

NODES = [f"n{number}" for number in range(8)]
GRAPHS = st.dictionaries(st.sampled_from(NODES), st.lists(st.sampled_from(NODES), max_size=4), max_size=8)


def reachable(graph: dict[str, list[str]], start: str) -> set[str]:
    found, waiting = set(), list(graph.get(start, []))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph.get(name, [])
    return found


@given(GRAPHS)
def test_a_graph_is_refused_exactly_when_somebody_waits_for_himself(graph: dict[str, list[str]]) -> None:
    has_cycle = any(name in reachable(graph, name) for name in graph)
    if not has_cycle:
        check_no_cycle(graph)
        return
    with pytest.raises(UsageError, match="wait for each other") as caught:
        check_no_cycle(graph)
    path = caught.value.message.partition(": ")[2].split(" -> ")
    assert path[0] == path[-1]
    assert len(path) > 1
    assert all(after in graph[name] for name, after in pairwise(path))


def test_a_long_chain_costs_no_recursion() -> None:
    chain = {f"n{number}": [f"n{number + 1}"] for number in range(5000)}
    check_no_cycle(chain)
    with pytest.raises(UsageError):
        check_no_cycle({**chain, "n5000": ["n0"]})


def test_the_same_dependency_twice_is_no_cycle() -> None:
    check_no_cycle({"a": ["b", "b"], "c": ["b", "a"]})

"""At stake: the description of the interface is honest: what it allows is taken, what it does not is refused."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.support import wait_until
from tests.web.support import Server, ended, new_task, serving, spawned

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
#: What goes on for as long as the client likes.
_ENDLESS = frozenset({"events.stream"})
#: Values that exist, which no generator would guess.
_REAL = {
    "task": ["t1"],
    "instance": ["good", "asks"],
    "id": ["q1"],
    "agent": ["general"],
    "stream": ["stdout", "stderr"],
}
#: What would run for long, or start what a generator has thought of.
_HARMLESS: dict[str, dict[str, Any]] = {"spawn": {"argv": ["true"]}, "spawn-batch": {"workers": [{"argv": ["true"]}]}}


@pytest.fixture
def peopled(root: Path) -> Any:
    """Return a server of a task with workers, which can start no program but harmless ones."""
    folder = root.parent / "bin"
    folder.mkdir()
    for name in ("true", "echo", "sh", "git"):
        for place in ("/usr/bin", "/bin"):
            if Path(place, name).exists() and not (folder / name).exists():
                (folder / name).symlink_to(Path(place, name))
    with serving(root, env={"PATH": str(folder)}) as server:
        task = new_task(server)
        spawned(server, task, ["echo", "out"], name="good", cwd="/")
        ended(server, task, "good")
        yield server
        server.post(f"/tasks/{task}/cancel", {"all": True})
        wait_until(
            lambda: [row["status"] for one in server.get("/tasks").done() for row in
                     server.get(f"/tasks/{one['taskId']}/list").done() if one["own"]],
            accept=lambda states: {*states} <= {"completed", "failed", "cancelled"}, what="all workers to end",
        )  # fmt: skip


def schema_of(server: Server) -> Any:
    """Return what the server says of itself, as schemathesis sees it."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    return schemathesis.openapi.from_dict(server.get("/openapi.json").done())


def test_the_description_is_honest(peopled: Server) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Those of its libraries are not ours.
        schema = schema_of(peopled)
        from schemathesis.generation import GenerationMode

        failures: list[str] = []
        for result in schema.get_all_operations():
            operation = result.ok()
            name = operation.definition.raw["operationId"]
            if name in _ENDLESS:
                continue
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                try:
                    _try(peopled, operation, name, mode)
                except (Exception, BaseExceptionGroup) as error:  # noqa: BLE001 - all are reported together
                    told = [str(one) for one in getattr(error, "exceptions", [error])]
                    failures.append(f"{name}, {mode.value}: {' '.join(told)[:900]}")
    assert not failures, "\n\n".join(failures)


def _try(server: Server, operation: Any, name: str, mode: Any) -> None:
    """Send requests that an operation allows, or does not allow, and check the answers."""
    is_positive = mode.value == "positive"

    @settings(
        max_examples=12, database=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck)
    )
    @given(case=operation.as_strategy(generation_mode=mode), data=st.data())
    def ask(case: Any, data: st.DataObject) -> None:
        if is_positive:
            _make_real(case, data)
        _make_harmless(case, name, is_positive=is_positive)
        response = case.call(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"})
        if response.status_code == 431:  # A query that is too long is refused before anything looks at it.
            return
        case.validate_response(response, excluded_checks=_excluded(is_positive=is_positive))
        if is_positive and response.status_code == 400:
            # What no schema says, such as two values that exclude each other, is told by whoever carries it out.
            assert "openapi.json" not in (response.json()["hint"] or ""), response.json()["detail"]

    ask()


def _make_real(case: Any, data: st.DataObject) -> None:
    for key in case.path_parameters or {}:
        if key in _REAL and data.draw(st.integers(0, 3)):
            case.path_parameters[key] = data.draw(st.sampled_from(_REAL[key]))


def _make_harmless(case: Any, name: str, *, is_positive: bool) -> None:
    if not isinstance(case.body, dict):
        return
    if is_positive:
        case.body = _HARMLESS.get(name) or case.body
        for key in {"timeoutSeconds", "graceSeconds"} & case.body.keys():
            case.body[key] = min(case.body[key], 0.1)
    elif isinstance(case.body.get("argv"), list):
        case.body["argv"] = ["true"]


def _excluded(*, is_positive: bool) -> list[Any]:
    from schemathesis.specs.openapi import checks

    # Values that are allowed were put in the place of others, and a 400 is looked at by the test itself.
    return [checks.positive_data_acceptance, *([checks.negative_data_rejection] if is_positive else [])]

"""At stake: a command that runs while agentctl is upgraded is told as a bug, and people report bugs that nobody has."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctl.interfaces.web.endpoint_app import bug
from tests.installed import Installed, without

pytestmark = pytest.mark.slow

HINT = "hint: an upgrade may be under way: try again in a moment; if that does not help, install it again"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return Installed(tmp_path_factory.mktemp("installed"))


@pytest.mark.parametrize(
    ("part", "command", "names"),
    [
        ("interfaces/cli", ["list"], "agentctl.interfaces.cli"),
        ("interfaces/cli/app.py", ["list"], "agentctl.interfaces.cli.app"),
        ("errors.py", ["list"], "agentctl.errors"),
        ("world_errors.py", ["list"], "agentctl.world_errors"),
        ("interfaces/commands/show/list.py", ["list"], "agentctl.interfaces.commands.show.list"),
        ("interfaces/commands/model/catalogue.py", ["show", "nobody"], "agentctl.interfaces.commands.model.catalogue"),
        ("interfaces/commands/start/tasks.py", ["tasks"], "agentctl.interfaces.commands.start.tasks"),
        ("interfaces/words/outline.py", ["show", "nobody"], "agentctl.interfaces.words.outline"),
        ("operations/where", ["list"], "agentctl.operations.where"),
        ("agents", ["agents", "list"], "agents is missing"),
        ("drivers/acp/programs.yaml", ["agents", "list"], "programs.yaml is missing"),
        ("drivers/llm/providers.yaml", ["agents", "list"], "providers.yaml is missing"),
        ("guidance/delegating.md", ["install", "claude"], "guidance/delegating.md is missing"),
    ],
)
def test_what_meets_agentctl_being_replaced_is_told_and_told_as_no_bug(
    root: Path, installed: Installed, tmp_path: Path, part: str, command: list[str], names: str
) -> None:
    whole = installed.run(*command)
    with without(installed.package / part):
        done = installed.run(*command)
    assert (done.code, done.out) == (1, ""), done
    message, hint = done.err.splitlines()
    assert message.startswith("error: agentctl is incomplete: ")
    assert names in message
    assert hint == HINT
    assert not (tmp_path / "home" / ".local" / "state" / "agentctl" / "bugs.log").exists()
    again = installed.run(*command)
    assert (again.code, again.out, again.err) == (whole.code, whole.out, whole.err)


def test_a_file_of_agentctl_that_is_written_in_part_is_told_as_no_bug(root: Path, installed: Installed) -> None:
    module = installed.package / "interfaces/commands/start/tasks.py"
    with without(module):
        text = module.with_name(f"{module.name}.aside").read_text(encoding="utf-8")
        module.write_text(f"{text[: len(text) // 2]}\ndef cut(", encoding="utf-8")
        done = installed.run("tasks")
    assert done.code == 1
    assert done.err.splitlines() == [f"error: agentctl is incomplete: {module} is written in part", HINT]


def test_a_server_tells_that_agentctl_is_being_replaced(tmp_path: Path) -> None:
    def record(error: BaseException) -> str:
        raise error

    response = bug(
        ModuleNotFoundError(
            "No module named 'agentctl.interfaces.commands.show.list'", name="agentctl.interfaces.commands.show.list"
        ),
        record,
    )
    assert response.status_code == 503
    assert b"agentctl is incomplete" in response.body

"""At stake: short commands are mostly start-up, and shims live for hours, so neither loads what it does not need."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.shells import define_shells
from tests.steps import held, new_task, spawn, spawn_batch
from tests.support import REPOSITORY, alike, is_alive, run, start_argv, wait_until, worker
from tests.terminal import on_a_terminal

SLOW = {"yaml", "pydantic", "asyncio", "filelock", "psutil", "concurrent", "logging", "http", "email"}
#: What the extra `serve` installs.
OF_THE_SERVER = {"starlette", "uvicorn", "sse_starlette", "segno", "anyio", "h11"}
CODE = (
    "import sys; from agentctl.interfaces.cli.app import main; code = main(sys.argv[1:]);"
    "print('LOADED', *sys.modules, file=sys.stderr); sys.exit(code)"
)


def loaded_by(*args: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", CODE, *args], capture_output=True, text=True, check=False)
    _, mark, names = done.stderr.rpartition("LOADED ")
    assert mark, done.stderr
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in names.split()}


def test_a_frequent_command_that_has_work_to_do_loads_nothing_slow(root: Path, tmp_path: Path) -> None:
    new_task()
    spawn_batch([{"name": "a1", "argv": worker("exits", 3)}, held(tmp_path / "gate", "b1")])
    for args in (["list"], ["list", "--json"], ["wait-any", "--json"], ["show", "a1"], ["cancel", "b1"]):
        loaded = loaded_by(*args)
        assert "typer" not in loaded, "a plain line needs no parser"
        assert sorted(loaded & (SLOW | {"rich"})) == [], args
    assert "typer" not in loaded_by("spawn", "--name", "c1", "--wait", "--", "true")
    assert "typer" in loaded_by("list", "--help")


@pytest.mark.slow
def test_work_for_an_agent_loads_no_yaml_once_its_files_are_known(root: Path) -> None:
    new_task()
    define_shells()
    own = Path(os.environ["HOME"], ".config", "agentctl", "config.yaml")
    own.write_text("driverOrder: [codex, claude]\nconfig: {maxDepth: 3}\n", encoding="utf-8")
    work = ("subtask", "shell", "Say it", "--intent", "echo hello")
    assert "yaml" in loaded_by(*work)
    loaded = loaded_by(*work)
    assert sorted(loaded & SLOW) == []
    own.write_text("driverOrder: [claude]\n", encoding="utf-8")
    assert "yaml" in loaded_by(*work)


@pytest.mark.parametrize("args", [("list",), *alike((("tasks",),))])
def test_rich_is_loaded_to_draw_on_a_terminal_and_only_then(root: Path, args: tuple[str, ...]) -> None:
    new_task()
    spawn(worker("exits", 0), "--wait", name="a1")
    _, drawn = on_a_terminal([sys.executable, "-c", CODE, *args])
    assert b"rich.console" in drawn
    _, as_json = on_a_terminal([sys.executable, "-c", CODE, *args, "--json"])
    assert b"LOADED" in as_json
    assert b"rich.console" not in as_json
    assert "rich" not in loaded_by(*args)


@pytest.mark.slow
def test_nothing_but_the_screen_loads_its_library(root: Path) -> None:
    new_task()
    for args in (("watch", "--help"), ("list",), ("tree",), ("spawn", "--name", "a1", "--wait", "--", "true")):
        assert "textual" not in loaded_by(*args), args


def test_the_screen_loads_with_a_key_what_only_that_key_shows_or_does() -> None:
    """Its list is drawn before anybody can press one."""
    argv = [sys.executable, "-c", "import sys, agentctl.interfaces.screen.app; print(*sys.modules)"]
    loaded = set(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split())
    assert "agentctl.interfaces.screen.fleet.fleet_list" in loaded
    late = (
        "agentctl.interfaces.screen.worker.", "agentctl.interfaces.screen.texts.", "agentctl.operations.delegate.",
        "agentctl.domain.text.terminal_output", "agentctl.interfaces.words.looks.markdown_lines", "secrets",
    )  # fmt: skip
    assert sorted(name for name in loaded if name.startswith(late)) == []


@pytest.mark.slow
def test_nothing_but_the_server_loads_its_libraries(root: Path) -> None:
    new_task()
    spawn = ("spawn", "--name", "a1", "--wait", "--", "true")
    others = [("--version",), ("serve", "--help"), ("watch", "--help"), ("mcp", "--help"), ("list",), ("tree",), spawn]
    for args in [*others, ("search", "true"), ("tasks",), ("doctor",)]:
        assert sorted(loaded_by(*args) & OF_THE_SERVER) == [], args


@pytest.mark.slow
def test_nothing_but_the_agent_for_editors_loads_its_library(root: Path) -> None:
    new_task()
    spawn = ("spawn", "--name", "a1", "--wait", "--", "true")
    for args in (("acp", "--help"), ("mcp", "--help"), ("list",), ("tree",), ("doctor",), spawn):
        loaded = loaded_by(*args)
        # typer loads pydantic from 0.29 on, for a line that it has to read.
        assert sorted(loaded & ({"acp"} if "typer" in loaded else {"acp", "pydantic"})) == [], args


def test_the_server_starts_without_what_it_may_need_later(root: Path) -> None:
    new_task()
    spawn(worker("exits", 0), "--wait", name="a1")
    argv = [sys.executable, "-c", CODE, "serve", "--port", "0", "--json"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        said = json.loads(server.stdout.readline())
        token = Path(said["tokenFile"]).read_text(encoding="utf-8").strip()
        for path in ("/healthz", "/api/v1/tasks/t1"):
            asked = urllib.request.Request(f"{said['url']}{path}", headers={"Authorization": f"Bearer {token}"})
            with urllib.request.urlopen(asked, timeout=20) as answer:
                assert answer.status == 200
        server.send_signal(signal.SIGINT)
        _, err = server.communicate(timeout=20)
    assert server.returncode == 0, err
    loaded = set(err.rpartition("LOADED ")[2].split())
    assert {"starlette", "uvicorn"} <= loaded
    roots = {name.partition(".")[0] for name in loaded}
    assert sorted(roots & {"rich", "segno", "mcp", "yaml", "textual", "pydantic", "filelock", "psutil"}) == []
    assert not {name for name in loaded if name.startswith("agentctl.interfaces.mcp")}
    assert "agentctl.tools.registry" not in loaded


def test_a_shim_needs_the_standard_library_alone_and_little_of_it() -> None:
    later = (
        "agentctl.shim.watching, agentctl.supervision.dispatch.dispatch"  # Every shim needs these too, a moment later.
    )
    code = f"import sys; sys.path.insert(0, sys.argv[1]); import agentctl.shim.loop, {later}; print(*sys.modules)"
    argv = [sys.executable, "-I", "-S", "-c", code, str(REPOSITORY)]
    loaded = set(subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split())
    roots = {name.partition(".")[0] for name in loaded}
    assert roots <= sys.stdlib_module_names | {"agentctl", "__main__"}
    assert not roots & (
        SLOW
        | {"typing", "subprocess", "inspect", "pathlib", "tempfile", "random", "hashlib", "socket", "ssl", "threading"}
    )
    assert not {name for name in loaded if name.startswith(("agentctl.interfaces", "agentctl.operations"))}
    assert "agentctl.adapters.yamldoc" not in loaded
    assert len(loaded) < 165


def test_a_live_shim_has_nothing_of_site_packages_in_memory(root: Path, tmp_path: Path) -> None:
    task = new_task()
    spawn(worker("waits_for_file", tmp_path / "gate"), name="a1")
    shim = Path("/proc", str(task.shim_of("a1")))
    mapped = {line.split(None, 5)[5].strip() for line in shim.joinpath("maps").read_text().splitlines() if "/" in line}
    environ = shim.joinpath("environ").read_bytes()
    folder = os.readlink(shim / "cwd")
    (tmp_path / "gate").touch()
    task.ended("a1")
    assert mapped
    assert not [path for path in mapped if "site-packages" in path]
    assert environ == b""
    assert folder == "/"


def test_a_queue_of_many_is_worked_off_by_one_shim(root: Path, tmp_path: Path) -> None:
    """If a worker took an interpreter of its own, that would have another pid."""
    task = new_task(cap=1)
    names = [f"a{number}" for number in range(8)]
    rows = [{"name": name, "argv": ["true"]} for name in names]
    run("spawn", "--batch", "-", stdin="".join(json.dumps(row) + "\n" for row in rows))
    task.ended(*names)
    shims = {event["payload"]["shimPid"] for event in task.events("agent.started")}
    assert len(shims) == 1


def test_a_shim_leaves_when_the_queue_is_empty(root: Path) -> None:
    task = new_task()
    spawn(worker("exits", 0), name="a1")
    pid = task.shim_of("a1")
    task.ended("a1")
    wait_until(lambda: not is_alive(pid), what="the shim to leave")


def test_the_program_starts_without_its_site_packages_folder_writable(root: Path) -> None:
    """It must not have to write bytecode: the installation may belong to another user."""
    process = start_argv([sys.executable, "-B", "-m", "agentctl", "--version"], env={"PYTHONDONTWRITEBYTECODE": "1"})
    out, _ = process.communicate(timeout=20)
    assert out.startswith("agentctl ")

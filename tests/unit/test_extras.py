"""At stake: nobody who does what a hint says installs a stranger's package, or installs it where it is of no use.

`make test-extras` runs what is printed, in environments that the programs themselves have made.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

from agentctl.adapters import extras
from agentctl.adapters.extras import DISTRIBUTION, install_command
from tests.support import REPOSITORY

PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TEXTUAL = "'textual<9,>=8.2'"


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of another environment, where pipx and uv put theirs, as this interpreter's own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("PIPX_HOME", "UV_TOOL_DIR", "UV_TOOL_BIN_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def environment(monkeypatch: pytest.MonkeyPatch, folder: Path, **files: str) -> None:
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name.replace("__", ".").replace("uv_", "uv-")).write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "prefix", str(folder))
    monkeypatch.setattr(sys, "executable", str(folder / "bin" / "python"))


# -- what is installed -------------------------------------------------------------------------------------------------


def test_the_project_has_the_name_by_which_its_metadata_is_looked_for() -> None:
    assert PROJECT["name"] == DISTRIBUTION


@pytest.mark.parametrize("extra", sorted(PROJECT["optional-dependencies"].keys() - {"dev"}))
def test_an_extra_is_named_by_its_packages_with_their_bounds(extra: str) -> None:
    def parts(requirement: str) -> tuple[str, set[str]]:
        name = re.match(r"[\w-]+", requirement)
        assert name is not None
        return name[0], set(requirement[name.end() :].split(","))

    asked = PROJECT["optional-dependencies"][extra]
    assert sorted(map(parts, extras._packages(extra))) == sorted(map(parts, asked))


def test_where_nothing_is_installed_the_checkout_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "DISTRIBUTION", "agentctl-is-not-installed")
    assert install_command("tui").endswith(f"install '{REPOSITORY}[tui]'")


def test_what_cannot_be_known_is_said_in_words(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch, prefix / "env")
    assert install_command("odd") == f"install agentctl anew: {prefix}/env does not say what its extra odd needs"


# -- pip ---------------------------------------------------------------------------------------------------------------


def test_a_venv_is_filled_by_its_own_pip() -> None:
    assert install_command("tui") == f"{sys.executable} -P -m pip install {TEXTUAL}"


def test_the_pip_of_the_folder_in_which_it_is_typed_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "pip.py").write_text("print('a stranger')", encoding="utf-8")
    line = install_command("tui").partition(" install ")[0]
    done = subprocess.run(f"{line} --version", shell=True, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("pip ")


def test_an_environment_without_pip_is_filled_by_uv(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch, prefix / "an env")
    monkeypatch.setattr(importlib.util, "find_spec", {}.get)
    assert install_command("tui") == f"uv pip install --directory / --python '{prefix}/an env/bin/python' {TEXTUAL}"


def test_beside_the_packages_of_a_system_it_goes_to_the_user(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch, prefix / "usr")
    (prefix / "EXTERNALLY-MANAGED").touch()
    monkeypatch.setattr(sysconfig, "get_path", {"stdlib": str(prefix)}.get)
    assert "--user" not in install_command("tui")
    monkeypatch.setattr(sys, "base_prefix", sys.prefix)
    assert install_command("tui").endswith(f"pip install --break-system-packages --user {TEXTUAL}")


# -- pipx --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("home", [".local/share/pipx", ".local/pipx"])
def test_an_environment_of_pipx_is_injected_into(prefix: Path, monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    environment(monkeypatch, prefix / home / "venvs" / "agentctl-cli-old", pipx_metadata__json="{}")
    assert install_command("tui") == f"pipx inject agentctl-cli-old {TEXTUAL}"


def test_a_pipx_that_would_look_elsewhere_is_told_where(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch, prefix / "my pipx" / "venvs" / "agentctl-cli", pipx_metadata__json="{}")
    inject = f"pipx inject agentctl-cli {TEXTUAL}"
    assert install_command("tui") == f"env 'PIPX_HOME={prefix}/my pipx' {inject}"
    monkeypatch.setenv("PIPX_HOME", str(prefix / "my pipx"))
    assert install_command("tui") == inject
    monkeypatch.setenv("PIPX_HOME", str(prefix))
    assert install_command("tui").startswith("env ")


def test_what_pipx_keeps_for_one_run_cannot_be_injected_into(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(monkeypatch, prefix / ".local/share/pipx/.cache/1523fb", pipx_metadata__json="{}")
    assert "inject" not in install_command("tui")


# -- uv tool -----------------------------------------------------------------------------------------------------------


def tool(monkeypatch: pytest.MonkeyPatch, home: Path, *requirements: str, more: str = "", after: str = "") -> str:
    """Return what is printed in a tool of uv with these requirements."""
    programs = json.dumps(str(home / ".local" / "bin" / "agentctl"))
    receipt = (
        f"[tool]\nrequirements = [{', '.join(requirements)}]\n{more}\n"
        f'entrypoints = [{{ name = "agentctl", install-path = {programs}, from = "agentctl-cli" }}]\n{after}\n'
    )
    folder = home / ".local" / "share" / "uv" / "tools" / f"agentctl-cli{len(list(home.iterdir()))}"
    environment(monkeypatch, folder, uv_receipt__toml=receipt)
    return install_command("tui")


ITSELF = '{ name = "agentctl-cli", directory = "/home/me/agent ctl" }'
PLACES = {
    ITSELF: "'agentctl-cli @ file:///home/me/agent%20ctl'",
    '{ name = "agentctl-cli", extras = ["acp", "mcp"], editable = "/x" }': "'agentctl-cli[acp,mcp] @ file:///x'",
    '{ name = "agentctl-cli", path = "/x.whl" }': "'agentctl-cli @ file:///x.whl'",
    '{ name = "agentctl-cli", url = "https://x.example/a.whl" }': "'agentctl-cli @ https://x.example/a.whl'",
    '{ name = "agentctl-cli", git = "https://x.example/a" }': "'agentctl-cli @ git+https://x.example/a'",
    '{ name = "agentctl-cli", git = "ssh://git@x.example/a?subdirectory=b&rev=v1" }': (
        "'agentctl-cli @ git+ssh://git@x.example/a@v1#subdirectory=b'"
    ),
}


@pytest.mark.parametrize("told", PLACES)
def test_a_tool_of_uv_is_installed_again_from_where_it_came(
    prefix: Path, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    editable = "--editable " if "editable" in told else ""
    assert tool(monkeypatch, prefix, told) == f"uv tool install {editable}--with {TEXTUAL} {PLACES[told]}"


def test_a_tool_of_uv_keeps_what_it_had(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    had = ['{ name = "segno", specifier = ">=1.6" }', '{ name = "mine", editable = "/m" }']
    assert tool(monkeypatch, prefix, ITSELF, *had, more='python = "3.12"') == (
        "uv tool install --python 3.12 --with 'segno>=1.6' --with-editable 'mine @ file:///m' "
        f"--with {TEXTUAL} {PLACES[ITSELF]}"
    )


@pytest.mark.parametrize(
    "odd",
    [
        {"requirements": ['{ name = "agentctl-cli" }']}, {"requirements": ['"agentctl-cli"']}, {"requirements": []},
        {"requirements": ['{ name = "agentctl-cli", specifier = "==1" }']},
        {"requirements": ['{ name = "agentctl-cli", directory = "not/absolute" }']},
        {"requirements": [ITSELF, '{ name = "a", marker = "x" }']},
        {"requirements": ['{ name = "agentctl-cli", git = "https://x.example/a?lfs=1" }']},
        {"requirements": [ITSELF], "more": 'constraints = ["x"]'},
        {"requirements": [ITSELF], "after": '[tool.options]\nindex-url = "https://x.example"'},
        {"requirements": [ITSELF], "after": "["},
    ],
)  # fmt: skip
def test_what_cannot_be_said_again_is_filled_as_any_other_environment(
    prefix: Path, monkeypatch: pytest.MonkeyPatch, odd: dict[str, Any]
) -> None:
    requirements = odd.pop("requirements")
    printed = tool(monkeypatch, prefix, *requirements, **odd)
    assert " tool " not in printed
    assert f"{sys.executable}" in printed
    assert printed.endswith(TEXTUAL)


def test_a_uv_that_would_look_elsewhere_is_told_where(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_TOOL_DIR", "/elsewhere")
    monkeypatch.setenv("XDG_BIN_HOME", str(prefix))
    begin = f"env UV_TOOL_DIR={prefix}/.local/share/uv/tools UV_TOOL_BIN_DIR={prefix}/.local/bin uv tool install "
    assert tool(monkeypatch, prefix, ITSELF).startswith(begin)


# -- every text that says how something is installed -------------------------------------------------------------------

#: Names agentctl as if the package index knew whose it is. What is in brackets is a checkout's: `pip install '.[tui]'`.
BY_NAME = re.compile(
    r"(?<![/\w-])agentctl(-cli)?\[[a-z]"
    r"|(\b(pip3?|pipx|tool) (install|download|run)|\buvx|--from|--spec) ['\"]?agentctl\b"
)
TEXTS = [
    path
    for place in ("agentctl", "docs", "bench", "examples", "task_templates", "README.md", "SECURITY.md")
    for path in ([REPOSITORY / place] if place.endswith(".md") else sorted((REPOSITORY / place).rglob("*")))
    if path.suffix in {".py", ".md", ".yaml", ".html", ".js", ".toml", ".sh"}
]


def test_no_text_has_agentctl_fetched_by_its_name() -> None:
    for wrong in ("pip install 'agentctl[tui]'", "agentctl[acp]", "pipx install agentctl", "uvx agentctl-cli"):
        assert BY_NAME.search(wrong), wrong
    found = {
        f"{path.relative_to(REPOSITORY)}: {line.strip()}"
        for path in TEXTS
        if path.name != "0034-agentctl-cli.md"
        for line in path.read_text(encoding="utf-8").splitlines()
        if BY_NAME.search(line)
    }
    assert not found


def test_one_place_says_how_something_of_agentctl_is_installed() -> None:
    says = re.compile(r"pip\"?,? \"?install|pipx|uv tool|\"tool\", \"install\"")
    modules = [path for path in TEXTS if path.suffix == ".py" and REPOSITORY / "agentctl" in path.parents]
    found = {path.stem for path in modules if says.search(path.read_text(encoding="utf-8"))}
    # link: where pipx puts the command of another machine. marks: it is a program that starts others.
    assert found == {"extras", "uvtool", "host_link", "marks"}

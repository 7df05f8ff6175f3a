"""Where the agent programs run: configured for the stand-in model alone, whoever runs the tests."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_VENDORS = ("ANTHROPIC_", "CLAUDE", "CODEX_", "OPENAI_", "OPENCODE", "QWEN_", "DASHSCOPE_")
#: May appear in no file.
KEY = "the-key-of-this-test"
_CODEX_CONFIG = """\
model = "stand-in"
model_provider = "standin"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.standin]
name = "stand-in"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 1
stream_max_retries = {retries}
"""


def _opencode(url: str) -> dict[str, Any]:
    model = {"limit": {"context": 200_000, "output": 8000}, "tool_call": True}
    options = {"baseURL": f"{url}/v1", "apiKey": KEY}
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"stand-in": model}}
    return {
        "autoupdate": False, "share": "disabled", "model": "standin/stand-in", "small_model": "standin/stand-in",
        "provider": {"standin": provider},
    }  # fmt: skip


_NO_PLUGINS = {"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}
_QWEN = {
    "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
    "telemetry": {"enabled": False},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "disableUpdateNag": True},
}


def _write(file: Path, value: Mapping[str, Any]) -> None:
    """Write a file whole, by a rename: a program may start and read it at this moment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.new")
    draft.write_text(json.dumps(value), encoding="utf-8")
    draft.replace(file)


def environ_of(folder: Path, url: str, retries: int = 1) -> dict[str, str | None]:
    """Return what the programs need in their environment (None: not there), and write their configuration.

    Whoever runs them may have an account: nothing of it is passed on, and no proxy is asked.
    """
    home = folder / "codex"
    home.mkdir(exist_ok=True)
    # Whole, by a rename: a Codex that starts in this moment and reads half of it would take its defaults for the rest,
    # and with them the vendor's own address.
    draft = home / "config.toml.new"
    draft.write_text(_CODEX_CONFIG.format(url=url, retries=retries), encoding="utf-8")
    draft.replace(home / "config.toml")
    _write(folder / "config" / "opencode" / "opencode.json", _opencode(url))
    _write(folder / "qwen" / "settings.json", _QWEN)
    # Without this mark, opencode installs the library for its plugins there, from the network.
    _write(folder / "config" / "opencode" / "package-lock.json", _NO_PLUGINS)
    (folder / "config" / "opencode" / "node_modules").mkdir(exist_ok=True)
    return {
        **{name: None for name in os.environ if name.startswith(_VENDORS)},
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": str(retries),
        "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "CODEX_HOME": str(home),
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_MODEL": "stand-in",
        "OPENCODE_CONFIG": str(folder / "config" / "opencode" / "opencode.json"),
        "OPENCODE_CONFIG_DIR": str(folder / "config" / "opencode"),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "QWEN_HOME": str(folder / "qwen"),
        # Claude Code takes only "1" for it, and its adapter anything.
        "IS_SANDBOX": "1",
    }

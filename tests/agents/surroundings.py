"""Where the agent programs run: configured for the stand-in model alone, whoever runs the tests."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_VENDORS = ("ANTHROPIC_", "CLAUDE", "CODEX_", "OPENAI_", "OPENCODE", "QWEN_")
#: May appear in no file.
KEY = "the-key-of-this-test"
_CODEX_CONFIG = """\
model = "stand-in"
model_provider = "standin"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
[model_providers.standin]
name = "stand-in"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 1
stream_max_retries = {retries}
"""
_OPENCODE_MODEL = {"limit": {"context": 200_000, "output": 8_000}, "tool_call": True}
_QWEN_CONFIG = {
    "security": {"auth": {"selectedType": "openai"}},
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}

#: Rows of providers: the stand-in by either API, with prices and a key.
_PROVIDERS = """\
providers:
  standin:
    url: {url}/v1
    keyVariable: OPENAI_API_KEY
    retries: {retries}
    models:
      stand-in: {{context: 100000, prices: {{input: 1, output: 10, cached: 0.1}}}}
      small: {{context: 1500}}
  standinthropic:
    dialect: anthropic
    url: {url}
    keyVariable: ANTHROPIC_API_KEY
    retries: {retries}
    models:
      small: {{context: 1500}}
defaultModel: {model}
"""


def write_providers(config: Path, url: str, model: str, retries: int = 1) -> None:
    """Give a person, by their config folder, the stand-in as a provider, and a model of it for whoever names none."""
    config.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = config / "providers.yaml"
    file.write_text(_PROVIDERS.format(url=url, model=model, retries=retries), encoding="utf-8")


def environ_of(folder: Path, url: str, retries: int = 1) -> dict[str, str | None]:
    """Return what the programs need in their environment (None: not there), and write their configuration.

    Whoever runs them may have an account: nothing of it is passed on, and no proxy is asked.
    """
    codex = _written(folder / "codex" / "config.toml", _CODEX_CONFIG.format(url=url, retries=retries))
    opencode = _written(folder / "opencode" / "opencode.json", json.dumps(_opencode_config(url)))
    qwen = _written(folder / "qwen" / "settings.json", json.dumps(_QWEN_CONFIG))
    return {
        **{name: None for name in os.environ if name.startswith(_VENDORS)},
        # As root, Claude Code takes no other value of it than 1, and its adapter any.
        "IS_SANDBOX": None,
        "NO_PROXY": "127.0.0.1",
        "no_proxy": "127.0.0.1",
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": str(retries),
        "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "CODEX_HOME": str(codex.parent),
        "NO_BROWSER": "1",
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_MODEL": "stand-in",
        "OPENCODE_CONFIG": str(opencode),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "QWEN_HOME": str(qwen.parent),
        # opencode installs a package for plugins when it starts.
        "npm_config_offline": "true",
    }


def _opencode_config(url: str) -> dict[str, Any]:
    options = {"baseURL": f"{url}/v1", "apiKey": "{env:OPENAI_API_KEY}"}
    models = dict.fromkeys(("stand-in", "other"), _OPENCODE_MODEL)
    provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
    return {
        "model": "standin/stand-in",
        "small_model": "standin/stand-in",
        "provider": {"standin": provider},
        "enabled_providers": ["standin"],
        "autoupdate": False,
        "share": "disabled",
    }


def _written(path: Path, text: str) -> Path:
    """Write a file whole, by a rename.

    A program that starts in this moment and reads half of it would take its defaults for the rest, and with them the
    vendor's own address.
    """
    path.parent.mkdir(exist_ok=True)
    draft = path.with_suffix(".new")
    draft.write_text(text, encoding="utf-8")
    return draft.replace(path)

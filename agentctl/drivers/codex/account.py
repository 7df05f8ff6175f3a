"""Whose account a Codex uses: that of the key which its provider's configuration names, else that of its login."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from agentctl.drivers.codex.items import as_dict, as_text

#: What decides it where no provider of the person's own does.
VARIABLES = ("CODEX_API_KEY", "CODEX_HOME", "HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL")


def account_of(environ: Mapping[str, str], read: Callable[[str], bytes]) -> list[str]:
    """Return what decides the account, in an environment.

    Args:
        read: Gives the content of a file; nothing where there is none.

    >>> config = b'model_provider = "own"\\n[model_providers.own]\\nbase_url = "http://x"\\nenv_key = "MY_KEY"\\n'
    >>> account_of({"MY_KEY": "1", "CODEX_HOME": "/c"}, {"/c/config.toml": config}.__getitem__)
    ['http://x', '1']
    """
    home = environ.get("CODEX_HOME") or os.path.join(environ.get("HOME", ""), ".codex")
    provider = _provider_in(read(os.path.join(home, "config.toml")))
    key = environ.get(as_text(provider.get("env_key")))
    if key:
        return [as_text(provider.get("base_url")), key]
    return [*(environ.get(name, "") for name in VARIABLES), _login_in(read(os.path.join(home, "auth.json")))]


def _provider_in(config: bytes) -> Mapping[str, Any]:
    """Return the provider that a `config.toml` chooses; nothing where that cannot be told."""
    import tomllib  # Only for a Codex.

    try:
        told = tomllib.loads(config.decode())
    except (ValueError, RecursionError):
        return {}
    profile = as_dict(as_dict(told.get("profiles")).get(as_text(told.get("profile"))))
    name = as_text(profile.get("model_provider")) or as_text(told.get("model_provider"))
    return as_dict(as_dict(told.get("model_providers")).get(name))


def _login_in(auth: bytes) -> str:
    """Return the id of the account that a login is of: another one may log in in the same place."""
    try:
        return as_text(as_dict(as_dict(json.loads(auth)).get("tokens")).get("account_id"))
    except (ValueError, RecursionError):
        return ""

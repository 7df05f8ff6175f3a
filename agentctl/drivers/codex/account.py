"""Identifies the account that Codex uses, and reads its reports about that account's usage windows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from agentctl.domain.tree.windows import Window, name_of_minutes, window_from
from agentctl.drivers.values import object_in, text_in

#: The variables that decide it, unless a provider in the person's config does.
VARIABLES = ("CODEX_API_KEY", "CODEX_HOME", "HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL")


def codex_account(environ: Mapping[str, str], read: Callable[[str], bytes]) -> list[str]:
    """Return the texts that identify the account in an environment.

    Args:
        read: Returns the content of a file; empty if there is none.

    >>> config = b'model_provider = "own"\\n[model_providers.own]\\nbase_url = "http://x"\\nenv_key = "MY_KEY"\\n'
    >>> codex_account({"MY_KEY": "1", "CODEX_HOME": "/c"}, {"/c/config.toml": config}.__getitem__)
    ['http://x', '1']
    """
    home = environ.get("CODEX_HOME") or os.path.join(environ.get("HOME", ""), ".codex")
    provider = _provider_in(read(os.path.join(home, "config.toml")))
    key = environ.get(text_in(provider.get("env_key")))
    if key:
        return [text_in(provider.get("base_url")), key]
    known = {**environ, "CODEX_HOME": home}
    return [*(known.get(name, "") for name in VARIABLES), _login_in(read(os.path.join(home, "auth.json")))]


def _provider_in(config: bytes) -> Mapping[str, Any]:
    """Return the provider that a `config.toml` chooses; {} if the file cannot be read."""
    import tomllib  # Only for a Codex.

    try:
        settings = tomllib.loads(config.decode())
    except (ValueError, RecursionError):
        return {}
    profile = object_in(object_in(settings.get("profiles")).get(text_in(settings.get("profile"))))
    name = text_in(profile.get("model_provider")) or text_in(settings.get("model_provider"))
    return object_in(object_in(settings.get("model_providers")).get(name))


def _login_in(auth: bytes) -> str:
    """Return the account id of a login: somebody else may log in with the same home."""
    try:
        return text_in(object_in(object_in(json.loads(auth)).get("tokens")).get("account_id"))
    except (ValueError, RecursionError):
        return ""


#: The ids of limits of the whole account; other ids are limits of single models.
_WHOLE = (None, "codex")
_FULL = 100.0


def codex_windows(params: Mapping[str, Any]) -> list[Window]:
    """Return the windows that a notification reports.

    >>> primary = {"usedPercent": 97, "windowDurationMins": 300, "resetsAt": 1788625200}
    >>> codex_windows({"rateLimits": {"limitId": "codex", "primary": primary, "secondary": None}})
    [Window(name='five_hour', used_percent=97.0, resets_at=1788625200.0, is_rejected=False)]
    """
    limits = object_in(params.get("rateLimits"))
    if limits.get("limitId") not in _WHOLE:
        return []
    windows = [object_in(limits.get(name)) for name in ("primary", "secondary")]
    found = [
        window_from(name_of_minutes(one.get("windowDurationMins")), one.get("usedPercent"), one.get("resetsAt"))
        for one in windows
    ]
    return [window for window in found if window is not None]


def rejected(windows: Iterable[Window]) -> list[Window]:
    """Return the full windows, marked as rejected: an error about the usage limit does not say when it ends."""
    return [window._replace(is_rejected=True) for window in windows if (window.used_percent or 0) >= _FULL]

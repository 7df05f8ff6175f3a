"""The accounts of agent programs: which one a worker uses, and where what is known of it is kept.

There is one file per account among a person's own files, so all their tasks share it and it survives a reboot.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

from agentctl.adapters.files import make_folder, read_known, to_json, write_whole
from agentctl.adapters.locks import locked
from agentctl.adapters.paths import FilePath
from agentctl.adapters.personal import state_folder
from agentctl.adapters.taskdir import TreeDir, WorkerDir, names_in
from agentctl.domain.names import is_name
from agentctl.lean import Any, NamedTuple
from agentctl.supervision.worker.spec import order_of

_SUFFIX, MOST_ACCOUNTS = ".json", 1000


class Account(NamedTuple):
    """An account, whose usage windows apply to a worker. Its name: the driver, and a hash of what decides the login."""

    name: str
    #: The folder of its file.
    folder: FilePath
    #: The model that the worker uses, if that is known.
    model: str | None = None

    @property
    def path(self) -> FilePath:
        """Its file."""
        return self.folder / (self.name + _SUFFIX)


def folder_of_accounts(environ: Mapping[str, str] = os.environ) -> FilePath:
    """Return where a person's accounts are kept."""
    return state_folder(environ) / "accounts"


def account_of(worker: WorkerDir) -> Account | None:
    """Return the account that a worker's program uses; None for a command."""
    return account_in(order_of(worker), worker)


def model_of(worker: WorkerDir) -> str | None:
    """Return the model that a worker was told to use, or that its program has told; None if neither is known."""
    return _model(order_of(worker), worker)


def _model(order: object, worker: WorkerDir) -> str | None:
    wanted = order.get("model") if isinstance(order, dict) else None
    model = wanted or read_known(worker.session).get("model")
    return model if isinstance(model, str) else None


def account_in(order: object, worker: WorkerDir) -> Account | None:
    """Return the account that an order names."""
    if not isinstance(order, dict):
        return None
    name, folder = order.get("account"), order.get("accounts")
    if not (isinstance(name, str) and is_name(name) and isinstance(folder, str) and os.path.isabs(folder)):
        return None
    return Account(name, FilePath(folder), _model(order, worker))


def forget(account: Account) -> bool:
    """Delete what is known of an account, so that no worker waits for it; return whether anything was known."""
    with locked(account.folder / ""), contextlib.suppress(FileNotFoundError):
        os.unlink(account.path)
        return True
    return False


def write_account(account: Account, value: Mapping[str, Any]) -> None:
    write_whole(account.path, to_json(value))


def all_accounts(folder: FilePath) -> list[Account]:
    """Return all accounts of which something is known."""
    names = [name.removesuffix(_SUFFIX) for name in names_in(folder, MOST_ACCOUNTS) if name.endswith(_SUFFIX)]
    return [Account(name, folder) for name in sorted(names) if is_name(name)]


def note_held(tree: TreeDir, account: Account) -> None:
    """Note in a tree of tasks that a worker of it waits for an account; otherwise dispatch does not check that."""
    make_folder(tree.cooling)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(tree.cooling / account.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))

"""At stake: an agent's program is a door to all that its user may do, so it is open to nobody but its worker."""

from __future__ import annotations

import http.client
from collections.abc import Iterator

import psutil

from tests.agents.lab import Lab

PATIENCE_S = 10


def test_strangers(lab: Lab) -> None:
    """While it works, no other user of the machine and no page is heard by it."""
    agent = lab.spawn("ask=file")
    lab.question(agent)
    heard = [f"{host}:{port} answers {told}" for host, port in doors(lab) if (told := asked(host, port)) != 401]
    lab.cancel(agent)
    assert heard == []


def doors(lab: Lab) -> Iterator[tuple[str, int]]:
    """Yield where the processes of all workers listen, to anybody who finds it."""
    for process in lab.processes():
        for connection in process.net_connections(kind="inet"):
            if connection.status == psutil.CONN_LISTEN:
                yield connection.laddr.ip, connection.laddr.port


def asked(host: str, port: int) -> int | str:
    """Return the status with which a question of no name is answered, or what else happens."""
    connection = http.client.HTTPConnection(host, port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/config")
        return connection.getresponse().status
    except (http.client.HTTPException, OSError) as error:
        return repr(error)
    finally:
        connection.close()

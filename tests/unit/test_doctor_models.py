"""At stake: what one thread of `doctor` cannot load, as on a failing disk, breaks no other one that waits for it."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import environment

_NOTE = """
import json, sys, threading
from agentctl.operations.doctor.models import examine_models
loaded = []
sys.addaudithook(lambda name, args: name == "import" and loaded.append((threading.current_thread().name, args[0])))
found = [one.what for one in examine_models()]
main = threading.main_thread().name
print(json.dumps({"found": found, "loaded": loaded, "in threads": [one for one in loaded if one[0] != main]}))
"""


class _Models(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"data": [{"id": "small"}]}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    """Run a local server of models; return its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Models) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield f"localhost:{found.server_address[1]}"
        found.shutdown()
        thread.join()


def test_all_that_threads_need_is_loaded_before_they_begin(root: Path, server: str) -> None:
    argv = [sys.executable, "-c", _NOTE]
    env = environment({"OLLAMA_HOST": server})
    told = json.loads(subprocess.run(argv, capture_output=True, check=True, timeout=30, env=env).stdout)
    assert any("small" in one for one in told["found"]), told
    assert "http.client" in [name for _, name in told["loaded"]]
    assert told["in threads"] == []

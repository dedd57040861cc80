"""What tests of several modules share: random inputs, a server, real data."""

import contextlib
import http.server
import os
import threading
import time
from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck

from utils.files import DATA_VARIABLE


def needs(name):
    """Skips a test, by name, where the user's folder of real text hasn't this."""
    folder = os.environ.get(DATA_VARIABLE)
    present = bool(folder) and (Path(folder) / name).exists()
    reason = f"no {name} in the folder that {DATA_VARIABLE} names"
    return pytest.mark.skipif(not present, reason=reason)


tries = hypothesis.settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

# --- a server on this machine -----------------------------------------------------


@contextlib.contextmanager
def serve(handler):
    """A server with this handler, in a thread; server.url is its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Files(http.server.BaseHTTPRequestHandler):
    """Answers with server.files, {name: bytes}, in a way that server.mood names.

    good, slow, cut (half of it), silent (no answer), page (of HTML), 404, 500.
    server.asked lists the names.
    """

    def do_GET(self):
        name, mood = self.path.strip("/"), self.server.mood
        self.server.asked.append(name)
        if mood == "silent":
            return
        if mood in ("404", "500") or name not in self.server.files:
            self.send_error(int(mood) if mood.isdigit() else 404)
            return
        page = b"<!DOCTYPE html><title>Please log in to this network</title>"
        content = page if mood == "page" else self.server.files[name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        half = len(content) // 2
        self.wfile.write(content[:half])
        if mood != "cut":
            time.sleep(0.5 if mood == "slow" else 0)
            self.wfile.write(content[half:])

    def log_message(self, *args):
        pass

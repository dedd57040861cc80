"""A class at once: JupyterHub, and learners who run notebooks through its API.

    python benchmarks/classroom.py 10 00 01 02 03 04

starts a hub with local processes on this machine and as many learners as the first
number says. Each learner gets a server of their own and runs the notebooks named, from
top to bottom and all at the same time. The figures go into benchmarks/README.md. Beyond
the course's packages, this Python needs JupyterHub, and PATH its proxy:

    pip install jupyterhub
    npm install --global configurable-http-proxy
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import psutil
import websocket
from report import FOLDER, store, write_readme
from timing import machine

ROOT = FOLDER.parent
ADDRESS = "http://127.0.0.1:8765"
PATIENCE = 600  # seconds for one cell, or for a server to start
CONFIG = """
import os, sys
c = get_config()
c.JupyterHub.bind_url = {address!r}
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {folder!r} + "/{{username}}"
c.Spawner.cmd = [sys.executable, "-m", "jupyterhub.singleuser"]
c.Spawner.args = ["--allow-root"]
# Cores are shared: threads that wait for each other would only hold them up.
c.Spawner.environment = {{"OMP_NUM_THREADS": "1"}}
c.Spawner.start_timeout = c.Spawner.http_timeout = {patience}
c.JupyterHub.services = [{{"name": "class", "api_token": {token!r}}}]
c.JupyterHub.load_roles = [{{
    "name": "class", "services": ["class"],
    "scopes": ["admin:users", "admin:servers", "access:servers"],
}}]
"""


class Hub:
    """A hub in a folder of its own; `with Hub(folder) as hub`."""

    def __init__(self, folder):
        self.folder, self.token = folder, secrets.token_hex(16)
        self.log = folder / "hub.log"

    def __enter__(self):
        config = self.folder / "config.py"
        config.write_text(
            CONFIG.format(
                address=ADDRESS,
                folder=str(self.folder),
                token=self.token,
                patience=PATIENCE,
            )
        )
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jupyterhub", "-f", str(config)],
                cwd=self.folder,
                stdout=log,
                stderr=log,
            )
        until(lambda: self.answers("/hub/api/"))
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.wait(60)
        if any(error):
            print(self.log.read_text(encoding="utf-8"), file=sys.stderr)

    def ask(self, method, path, content=None):
        request = urllib.request.Request(
            ADDRESS + path,
            method=method,
            data=None if content is None else json.dumps(content).encode(),
            headers={"Authorization": f"token {self.token}"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read() or "null")

    def answers(self, path):
        if self.process.poll() is not None:
            sys.exit(self.log.read_text(encoding="utf-8"))
        try:
            self.ask("GET", path)
        except OSError:  # not there yet
            return False
        return True


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE} seconds in vain")
        time.sleep(0.2)


class Learner:
    """One learner: a server, and the notebooks one after another."""

    def __init__(self, hub, name, paths):
        self.hub, self.name, self.paths = hub, name, paths
        self.cells, self.failures, self.reconnections = [], [], 0

    def learn(self):
        home = self.hub.folder / self.name / "notebooks"
        shutil.copytree(ROOT / "notebooks", home)  # as nbgitpuller gives it
        (home.parent / "data").symlink_to(ROOT / "data")
        start = time.perf_counter()
        self.hub.ask("POST", f"/hub/api/users/{self.name}")
        self.hub.ask("POST", f"/hub/api/users/{self.name}/server", {})
        until(lambda: self.hub.answers(f"/user/{self.name}/api/status"))
        self.server_seconds = time.perf_counter() - start
        for path in self.paths:
            self.run(path)
        self.seconds = time.perf_counter() - start
        return self

    def run(self, path):
        """One notebook in a kernel, which is shut down afterwards."""
        place = f"/user/{self.name}/api"
        session = self.hub.ask(
            "POST",
            f"{place}/sessions",
            {
                "path": f"notebooks/{path.name}",
                "name": path.name,
                "type": "notebook",
                "kernel": {"name": "python3"},
            },
        )
        kernel = Kernel(self.hub, f"{place}/kernels/{session['kernel']['id']}/channels")
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                start = time.perf_counter()
                error = kernel.execute(cell.source)
                line = cell.source.splitlines()[0]
                self.cells.append((time.perf_counter() - start, path.stem, line))
                if error:
                    self.failures.append(f"{path.stem}, `{line}`: {error}")
        kernel.channel.close()
        self.reconnections += kernel.reconnections
        self.hub.ask("DELETE", f"{place}/sessions/{session['id']}")


class Kernel:
    """A learner's line to a kernel. It is joined again when it breaks, as JupyterLab
    does: the server then hands out what it had kept for this session."""

    def __init__(self, hub, place):
        self.session, self.reconnections = uuid.uuid4().hex, 0
        address = ADDRESS.replace("http", "ws") + place
        self.connect = lambda: websocket.create_connection(
            f"{address}?session_id={self.session}",
            header={"Authorization": f"token {hub.token}"},
            timeout=PATIENCE,
        )
        self.channel = self.connect()

    def receive(self):
        while True:
            try:
                return self.channel.recv()
            except websocket.WebSocketConnectionClosedException:
                self.reconnections += 1
                self.channel = self.connect()

    def execute(self, code):
        """Run code; the error's name and text, or None."""
        header = {
            "msg_id": uuid.uuid4().hex,
            "msg_type": "execute_request",
            "username": "",
            "session": self.session,
            "date": "",
            "version": "5.3",
        }
        content = {"code": code, "silent": False, "allow_stdin": False}
        message = {
            "header": header,
            "parent_header": {},
            "metadata": {},
            "content": content,
            "channel": "shell",
        }
        self.channel.send(json.dumps(message))
        error = None
        while True:
            received = self.receive()
            if not isinstance(received, str):
                continue  # parts of a widget
            answer = json.loads(received)
            if answer["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            kind, content = answer["msg_type"], answer["content"]
            if kind == "error":
                error = f"{content['ename']}: {content['evalue'][:200]}"
            elif kind == "status" and content["execution_state"] == "idle":
                return error


def watch(names, peaks, done):
    """Each learner's largest memory in MB, of server and kernel, until `done`."""
    while not done.wait(2):
        now = dict.fromkeys(names, 0.0)
        for process in psutil.process_iter():
            try:
                name = process.environ().get("JUPYTERHUB_USER")
                if name in now:
                    now[name] += process.memory_info().rss / 1e6
            except psutil.Error:
                continue  # it has ended
        for name, megabytes in now.items():
            peaks[name] = max(peaks.get(name, 0.0), megabytes)
        peaks["all"] = max(peaks.get("all", 0.0), sum(now.values()))


def main(number, prefixes):
    paths = sorted(
        path
        for path in (ROOT / "notebooks").glob("*.ipynb")
        if path.name.startswith(tuple(prefixes))
    )
    names = [f"learner{n}" for n in range(number)]
    peaks, done = {}, threading.Event()
    with tempfile.TemporaryDirectory() as folder, Hub(Path(folder)) as hub:
        watcher = threading.Thread(target=watch, args=(names, peaks, done))
        watcher.start()
        try:
            with ThreadPoolExecutor(number) as room:
                learners = list(
                    room.map(lambda name: Learner(hub, name, paths).learn(), names)
                )
        finally:
            done.set()
            watcher.join()
            for name in names:
                hub.ask("DELETE", f"/hub/api/users/{name}/server")
    seconds, notebook, line = max(max(learner.cells) for learner in learners)
    store(
        FOLDER / "classroom.json",
        {
            "command": f"python benchmarks/classroom.py {number} {' '.join(prefixes)}",
            "machine": machine(),
            "gigabytes_there": psutil.virtual_memory().total / 1e9,
            "learners": number,
            "notebooks": [path.stem for path in paths],
            "cells": sum(len(learner.cells) for learner in learners),
            "failures": [text for learner in learners for text in learner.failures],
            "reconnections": sum(learner.reconnections for learner in learners),
            "server_seconds": [learner.server_seconds for learner in learners],
            "seconds": [learner.seconds for learner in learners],
            "megabytes": [peaks[name] for name in names],
            "megabytes_together": peaks["all"],
            "slowest": {"seconds": seconds, "notebook": notebook, "line": line},
        },
    )
    write_readme()


if __name__ == "__main__":
    os.environ.pop("MPLBACKEND", None)
    main(int(sys.argv[1]), sys.argv[2:])

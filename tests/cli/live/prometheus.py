#!/usr/bin/env python3
# usage: prometheus.py REPRISE LOG ROOT DASHBOARD CONFIG [--capture]
# Debian's Prometheus watches a real replay (and a recording, where this machine can make one) by the example
# configuration, with the targets of this test in it; then every query of the dashboard is asked as Grafana asks it, and
# must be answered, with figures in it. Everything is on loopback, and in the current folder.
# SPDX-License-Identifier: MIT
import argparse
import json
import math
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

# Panels that may be empty, by the metric that this machine may not have.
MAY_LACK = ("reprise_replay_device_bytes_total", "reprise_replay_own_device_read_bytes_total")
WAIT_S = 60  # for what takes a second; it only ends a test that hangs


def get(url):
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:  # Prometheus says why in the body
        return error.read().decode()


def wait_for(what, ready):
    for _ in range(WAIT_S * 20):
        found = ready()
        if found:
            return found
        time.sleep(0.05)
    sys.exit(f"gave up waiting for {what}")


def hold_port():
    """A port of loopback that nobody else gets, but for who binds to it as servers do (SO_REUSEADDR)."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


def address_of(held):
    return "%s:%d" % held.getsockname()


class Watched:
    """A reprise that serves metrics."""

    def __init__(self, name, command):
        self.errors = pathlib.Path(f"{name}.err")
        with open(self.errors, "wb") as errors, open(f"{name}.out", "wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=errors, stdin=subprocess.DEVNULL)
        self.address = wait_for(f"the address of {name}", self.find_address)
        self.text = ""

    def find_address(self):
        found = re.search(r"^metrics: http://(127\.0\.0\.1:\d+)/metrics$", self.errors.read_text(), re.M)
        if not found and self.process.poll() is not None:
            sys.exit(f"it ended: {self.errors.read_text()}")
        return found and found[1]

    def look(self):
        """False once it has ended."""
        try:
            self.text = get(f"http://{self.address}/metrics")
        except OSError:
            return False
        return True

    def end(self):
        code = self.process.wait(WAIT_S)
        if code not in (0, 1):  # 1: a crowded machine did not keep the time
            sys.exit(f"exit code {code}: {self.errors.read_text()}")


class Prometheus:
    def __init__(self, config, targets):
        text = pathlib.Path(config).read_text(encoding="utf-8")
        text, changed = re.subn(r"targets: \[.*?\]", "targets: " + json.dumps(targets), text)
        assert changed == 1, "the example has another form"
        pathlib.Path("prometheus.yml").write_text(text, encoding="utf-8")
        self.port = hold_port()
        self.url = f"http://{address_of(self.port)}"
        with open("prometheus.log", "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb", "--log.level=warn",
                 f"--web.listen-address={address_of(self.port)}"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        # It takes targets up some seconds after its start.
        if wait_for("Prometheus", lambda: self.state(len(targets))) != "ready":
            sys.exit("Prometheus does not start: " + pathlib.Path("prometheus.log").read_text())

    def state(self, targets):
        if self.process.poll() is not None:
            return "ended"
        try:
            known = "Ready" in get(self.url + "/-/ready") and self.api("targets")["activeTargets"]
            return "ready" if known and len(known) == targets else None
        except OSError:
            return None

    def api(self, what, **query):
        answer = json.loads(get(f"{self.url}/api/v1/{what}?{urllib.parse.urlencode(query)}"))
        if answer["status"] != "success":
            raise ValueError(answer.get("error"))
        return answer["data"]

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def series_with_figures(result):
    return sum(any(math.isfinite(float(value)) for _, value in row["values"]) for row in result)


def ask(prometheus, dashboard, begin, end, served, wanted):
    """Every query, over the whole time. Prints a line each; returns what is wrong."""
    problems = []
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            query = target["expr"].replace("$__rate_interval", "3s").replace("$instance", ".*")
            where = f"{panel['title']} {target['refId']}"
            try:
                found = series_with_figures(
                    prometheus.api("query_range", query=query, start=begin, end=end, step="500ms")["result"])
            except ValueError as error:
                problems.append(f"{where}: {error}: {query}")
                continue
            names = set(re.findall(r"reprise_[a-z_]+", query))
            excused = any(name in MAY_LACK and name not in served for name in names)
            expected = any(name.startswith(wanted) for name in names) and not excused
            print(f"{found:4} series  {where}{'' if found else ' (may be empty here)'}")
            if expected and not found:
                problems.append(f"{where}: no data: {query}")
    return problems


def check_totals(prometheus, run, begin, end):
    """What Prometheus saw last of a counter is at most what the run's result says, and most of it."""
    found = prometheus.api("query_range", query="sum(reprise_replay_ops_total)", start=begin, end=end, step="500ms")
    values = [float(value) for _, value in found["result"][0]["values"]]
    print(f"ops: {values[0]:.0f} to {values[-1]:.0f} in {len(values)} points; the result: {run['ops']}")
    if values != sorted(values):
        return ["a counter went back"]
    return [] if run["ops"] / 2 <= values[-1] <= run["ops"] else ["the last count is not that of the run"]


def main():
    parser = argparse.ArgumentParser()
    for name in ("reprise", "log", "root", "dashboard", "config"):
        parser.add_argument(name)
    parser.add_argument("--capture", action="store_true")
    given = parser.parse_args()
    dashboard = json.loads(pathlib.Path(given.dashboard).read_text(encoding="utf-8"))
    ports = [hold_port() for _ in range(2 if given.capture else 1)]
    prometheus = Prometheus(given.config, [address_of(port) for port in ports])
    try:
        problems = watch(prometheus, given, dashboard, *map(address_of, ports))
    finally:
        prometheus.end()
    for problem in problems:
        print("WRONG:", problem)
    sys.exit(1 if problems else 0)


def watch(prometheus, given, dashboard, replayed, recorded=None):
    begin = time.time()
    watched = [Watched("replay", [given.reprise, "replay", given.log, "--root", given.root, "--metrics", replayed,
                                  "--json=run.json"])]
    if given.capture:
        job = "i=0; while [ $i -lt 40 ]; do cat /etc/passwd >copy; sleep 0.1; i=$((i+1)); done"
        watched.append(Watched("capture", [given.reprise, "capture", "-o", "job.oplog", "--metrics", recorded, "--", "sh",
                                           "-c", job]))
    while any([one.look() for one in watched]):
        time.sleep(0.3)
    end = time.time()
    for one in watched:
        one.end()
    served = "".join(one.text for one in watched)
    pathlib.Path("served.txt").write_text(watched[0].text, encoding="utf-8")
    wanted = ("reprise_replay", "reprise_capture") if given.capture else ("reprise_replay",)
    problems = ask(prometheus, dashboard, begin, end, served, wanted)
    problems += check_totals(prometheus, json.loads(pathlib.Path("run.json").read_text()), begin, end)
    instances = prometheus.api("label/instance/values", **{"match[]": "reprise_build_info"})
    if sorted(instances) != sorted(one.address for one in watched):
        problems.append(f"the variable 'instance' has {instances}")
    return problems


os.environ.pop("http_proxy", None)  # all of this is on loopback
main()

#!/usr/bin/env python3
# usage: client.py get|pages|many|hold URL; client.py watch|until URL TEXT
# Clients of a metrics server. Exit code 1, with the reason, where it does not do what it should.
#   get    prints the page
#   pages  what is served where, and to which method
#   many   20 clients at once, while 20 others are silent
#   hold   connects, says "connected", sends nothing, ends when the server does
#   watch  reads until the sum of metric TEXT has grown
#   until  reads until a line has the pattern TEXT; prints the page
# SPDX-License-Identifier: MIT
import http.client
import re
import socket
import sys
import threading
import time
import urllib.parse

PATIENCE = 200  # s; a test that hangs ends some time


def connect(url):
    place = urllib.parse.urlsplit(url)
    return http.client.HTTPConnection(place.hostname, place.port, timeout=30)


def ask(url, method="GET", path="/metrics"):
    link = connect(url)
    link.request(method, path)
    answer = link.getresponse()
    text = answer.read().decode()
    link.close()
    return answer, text


def silent(url):
    place = urllib.parse.urlsplit(url)
    return socket.create_connection((place.hostname, place.port))


def page(url):
    return ask(url)[1]


def pages(url):
    answer, text = ask(url)
    assert answer.status == 200, answer.status
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8", answer.headers
    assert text.endswith("\n") and "# TYPE reprise_replay_op_duration_seconds histogram" in text or "_passed" in text
    head, none = ask(url, "HEAD")
    assert head.status == 200 and int(head.headers["Content-Length"]) > 1000 and none == "", head.headers
    for path in ("/", "/metrics/x", "/favicon.ico", "/../../etc/passwd"):
        answer, text = ask(url, path=path)
        assert answer.status == 404 and "the metrics are at /metrics" in text, (path, answer.status, text)
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        answer, text = ask(url, method)
        assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD", (method, answer.status)


def many(url):
    held = [silent(url) for _ in range(20)]
    wrong = []

    def read():
        for _ in range(5):
            answer, text = ask(url)
            if answer.status != 200 or "reprise_build_info" not in text:
                wrong.append(answer.status)

    threads = [threading.Thread(target=read) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for link in held:
        link.close()
    assert not wrong, wrong


def hold(url):
    link = silent(url)
    print("connected", flush=True)
    link.settimeout(60)
    assert link.recv(1) == b"", "the server sent something"


def total(text, metric):
    return sum(float(value) for value in re.findall(rf"^{metric}(?:\{{.*\}})? (\S+)$", text, re.M))


def watch(url, metric):
    first, end = None, time.monotonic() + PATIENCE
    while time.monotonic() < end:
        now = total(page(url), metric)
        if first is not None and now > first > 0:
            return
        first = now if first in (None, 0) else first
        time.sleep(0.05)
    sys.exit(f"{metric} does not grow from {first}")


def until(url, pattern):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        text = page(url)
        if re.search(pattern, text):
            print(text, end="")
            return
        time.sleep(0.05)
    sys.exit(f"no {pattern} in:\n{text}")


def main():
    what, url, *more = sys.argv[1:]
    try:
        if what == "get":
            print(page(url), end="")
        else:
            {"pages": pages, "many": many, "hold": hold, "watch": watch, "until": until}[what](url, *more)
    except (OSError, AssertionError) as error:
        sys.exit(f"{what}: {error!r}")


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Opens a timeline in the Perfetto UI, in a Chromium without a screen, and prints what the UI made of it as JSON.

The UI is served from a folder, the trace is handed over as the UI's documentation says (an embedding page that waits
for PONG and posts the buffer), and SQL goes to the UI's own engine. Needs nothing beyond the standard library:
Chromium is driven through --remote-debugging-pipe."""
import argparse
import base64
import contextlib
import fcntl
import functools
import http.server
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

PAGE = b"""<!doctype html><meta charset="utf-8"><title>host</title>
<style>html,body,iframe{margin:0;border:0;width:100%;height:100%;overflow:hidden;display:block}</style>
<iframe id="ui" src="/#!/viewer"></iframe>
<script>
const ui = document.getElementById('ui');
window.posted = false;
const asking = setInterval(() => ui.contentWindow.postMessage('PING', '*'), 100);
window.addEventListener('message', async (event) => {
  if (event.data !== 'PONG' || window.posted) return;
  window.posted = true;
  clearInterval(asking);
  const buffer = await (await fetch('/reprise/trace')).arrayBuffer();
  ui.contentWindow.postMessage({perfetto: {buffer, title: document.title, fileName: 'reprise.json'}}, '*', [buffer]);
});
</script>"""


class Server(http.server.SimpleHTTPRequestHandler):
    """The UI's folder, and the embedding page and the trace below /reprise/."""
    trace = pathlib.Path()
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm",
                      ".js": "text/javascript", ".json": "application/json"}

    def log_message(self, *_):
        pass

    def do_GET(self):
        if not self.path.startswith("/reprise/"):
            return super().do_GET()
        data = PAGE if self.path == "/reprise/host" else Server.trace.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if data is PAGE else "application/octet-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Chromium:
    """One page of a Chromium of its own."""

    def __init__(self, binary, profile, size):
        reads, to_it = os.pipe()
        from_it, writes = os.pipe()
        # Out of the way of the numbers 3 and 4, at which Chromium looks for its pipes.
        for_it = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 20) for fd in (reads, writes)]

        def arrange():
            os.dup2(for_it[0], 3)
            os.dup2(for_it[1], 4)

        self.process = subprocess.Popen(
            [binary, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--disable-background-networking", "--disable-component-update", "--mute-audio",
             f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}", "--remote-debugging-pipe", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4),
            preexec_fn=arrange, start_new_session=True)
        for fd in (reads, writes, *for_it):
            os.close(fd)
        self.to_it, self.from_it = to_it, from_it
        self.rest, self.last, self.said = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = None
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1, mobile=False)

    def message(self, until):
        while b"\0" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.from_it], [], [], left)[0]:
                raise TimeoutError("Chromium does not answer")
            more = os.read(self.from_it, 1 << 20)
            if not more:
                raise RuntimeError("Chromium ended")
            self.rest += more
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, seconds=120, **params):
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_it, data):]
        until = time.monotonic() + seconds
        while True:
            answer = self.message(until)
            if answer.get("method") == "Runtime.exceptionThrown":
                detail = answer["params"]["exceptionDetails"]
                self.said.append(detail.get("exception", {}).get("description") or detail["text"])
            if answer.get("id") != self.last:
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def run(self, script, seconds=120):
        """The value of a script's promise; `app` is the UI's."""
        whole = ("(async () => { const frame = document.getElementById('ui')?.contentWindow, app = frame?.app;"
                 f" return JSON.stringify(await (async () => {{ {script} }})() ?? null, "
                 "(key, value) => typeof value === 'bigint' ? Number(value) : value); })()")
        answer = self.call("Runtime.evaluate", seconds=seconds, expression=whole, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            detail = answer["exceptionDetails"]
            raise RuntimeError(detail.get("exception", {}).get("description") or detail["text"])
        return json.loads(answer["result"]["value"])

    def screenshot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        with contextlib.suppress(Exception):
            self.session = None
            self.call("Browser.close", seconds=5)
        with contextlib.suppress(Exception):
            self.process.wait(5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def wait_for(chromium, what, script, seconds):
    until = time.monotonic() + seconds
    while not chromium.run(script):
        if time.monotonic() > until:
            raise TimeoutError(f"after {seconds} s not yet: {what}; " + "; ".join(chromium.said[:3]))
        time.sleep(0.2)


QUERY = """const result = await app.trace.engine.query(%s);
const columns = result.columns(), rows = [];
for (const it = result.iter({}); it.valid(); it.next()) rows.push(columns.map((name) => it.get(name)));
return rows;"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace", type=pathlib.Path)
    parser.add_argument("--ui", default=os.environ.get("REPRISE_PERFETTO_UI"), help="folder with the UI's index.html")
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    parser.add_argument("--query", action="append", default=[], metavar="SQL", help="rows go to `queries`")
    parser.add_argument("--script", action="append", default=[], metavar="JS", help="run before the screenshot")
    parser.add_argument("--page", default="viewer", help="of the UI, for the screenshot: viewer, info")
    parser.add_argument("--screenshot", metavar="PNG")
    parser.add_argument("--size", default="1600x1000")
    parser.add_argument("--seconds", type=float, default=120, help="to wait for the UI and for the trace, each")
    options = parser.parse_args()
    if not options.ui or not (pathlib.Path(options.ui) / "index.html").is_file() or not options.chromium:
        sys.exit("open_timeline: needs --ui FOLDER with the UI's index.html, and Chromium")

    Server.trace = options.trace
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=options.ui))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="reprise-chromium-", ignore_cleanup_errors=True) as profile:
        chromium = Chromium(options.chromium, profile, [int(x) for x in options.size.split("x")])
        try:
            chromium.call("Page.navigate", url=f"http://127.0.0.1:{server.server_port}/reprise/host")
            wait_for(chromium, "the UI is there",
                     "return Boolean(window.posted && app)", options.seconds)
            wait_for(chromium, "the trace is loaded",
                     "return Boolean(app.trace && !app.isLoadingTrace)", options.seconds)
            out = {
                "errors": chromium.run("return app.trace.traceInfo.importErrors"),
                "loading_errors": chromium.run("return app.trace.loadingErrors"),
                "stats": chromium.run(QUERY % json.dumps(
                    "select name, severity, value from stats where severity in ('error', 'data_loss') and value > 0")),
                "queries": [chromium.run(QUERY % json.dumps(sql)) for sql in options.query],
            }
            if options.screenshot:
                if options.page != "viewer":
                    chromium.run(f"frame.location.hash = '#!/{options.page}'")
                for script in options.script:
                    out.setdefault("scripts", []).append(chromium.run(script))
                time.sleep(1)
                wait_for(chromium, "everything is drawn", "return !frame.raf.hasPendingRedraws", options.seconds)
                time.sleep(2)
                chromium.screenshot(options.screenshot)
            out["exceptions"] = chromium.said
        finally:
            chromium.close()
            server.shutdown()
    json.dump(out, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()

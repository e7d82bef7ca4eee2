#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Opens a page of `reprise analyze` in a Chromium without a screen, uses it as people do, and compares what is drawn with
the JSON of the same analysis. Prints what it found as JSON; exits 1 where something is wrong, and says what."""
import argparse
import json
import pathlib
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "perfetto"))
from open_timeline import Chromium  # noqa: E402

wrong = []


def check(condition, what):
    if not condition:
        wrong.append(what)


class Browser(Chromium):
    """Keeps what pages write to the console."""

    def __init__(self, *arguments):
        self.console = []
        super().__init__(*arguments)

    def message(self, until):
        answer = super().message(until)
        if answer.get("method") == "Runtime.consoleAPICalled":
            self.console.append(str([one.get("value", one.get("description")) for one in answer["params"]["args"]]))
        if answer.get("method") == "Log.entryAdded":
            self.console.append(answer["params"]["entry"]["text"])
        return answer

    def key(self, key, modifiers=0):
        text = key if len(key) == 1 else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, modifiers=modifiers)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers)

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)


FIGURE = "const figure = reprisePage.figures.find((one) => one.given.id === %s); "


def opened(browser, page):
    browser.call("Page.navigate", url=page.resolve().as_uri())
    until = time.monotonic() + 60
    while not browser.run("return Boolean(window.reprisePage)"):
        if time.monotonic() > until:
            sys.exit(f"look_at_page: the page's script did not run: {browser.said + browser.console}")
        time.sleep(0.05)
    ready = browser.run("return reprisePage.ready")
    browser.run("reprisePage.drawAll()")
    return ready


def near(a, b):
    return abs(a - b) <= 1e-4 * max(abs(a), abs(b)) + 1e-9


def values_of(browser, chart):
    """Series by name, as they are in the chart, in base units; empty where there is no such chart."""
    return dict(browser.run(f"""{FIGURE % json.dumps(chart)} if (!figure) return [];
        return figure.chart.data.datasets.map((set) => [set.label, set.data.map((at) =>
          at === null || at.y === null ? null : (typeof at === 'object' ? at.y : at) * figure.y.factor)]);"""))


def compare_with_json(browser, log):
    """What is drawn is what the JSON holds."""
    over_time = log["over_time"]
    seconds = over_time["interval_ns"] / 1e9
    compared = 0
    for chart, series, key, by in (("throughput", "read", "read_bytes", seconds), ("throughput", "written", "written_bytes", seconds),
                                   ("iops", "reads", "reads", seconds), ("iops", "metadata", "metadata_calls", seconds),
                                   ("depth", "in flight", "in_flight_ns", over_time["interval_ns"]),
                                   ("use", "computing tasks", "compute_ns", over_time["interval_ns"]),
                                   ("use", "busy accelerators", "accelerator_busy_ns", over_time["interval_ns"])):
        drawn = values_of(browser, chart).get(series)
        if not any(over_time[key]):
            check(drawn is None, f"{chart}: {series} is drawn, but never there")
            continue
        expected = [value / by for value in over_time[key]]
        check(drawn is not None and len(drawn) == len(expected), f"{chart}: {series} is not drawn")
        for at, (a, b) in enumerate(zip(drawn or [], expected)):
            # The JSON rounds to whole bytes, calls and ns.
            if not (near(a, b) or abs(a - b) * by <= 0.51):
                check(False, f"{chart}: {series} at {at} is {a}, expected {b}")
                break
        compared += 1
    sizes = values_of(browser, "sizes").get("reads", [])
    check(sum(sizes) == sum(row["calls"] for row in log["reads_by_size"]), "request sizes: not all reads are drawn")
    bounds = log["bounds"]
    if bounds and bounds["modelled"]:
        wanted = [bounds["recorded_ns"]] + [bounds[key]["elapsed_ns"] for key in (
            "modelled", "infinitely_fast_storage", "infinitely_fast_processor", "infinitely_fast_accelerator") if bounds[key]]
        drawn = values_of(browser, "what-if").get("elapsed", [])
        check(len(drawn) == len(wanted) and all(near(a * 1e9, b) for a, b in zip(drawn, wanted)), f"what-if: {drawn}, expected {wanted}")
    return compared


def check_pixels(browser):
    """Each chart has something on it; points lie where their values belong."""
    for found in browser.run("""return reprisePage.figures.map((figure) => {
          const chart = figure.chart, canvas = chart.canvas, area = chart.chartArea;
          const ratio = canvas.width / canvas.clientWidth;
          const pixels = canvas.getContext('2d').getImageData(area.left * ratio, area.top * ratio, (area.right - area.left) * ratio,
            (area.bottom - area.top) * ratio).data;
          const colors = new Set();
          for (let i = 0; i < pixels.length; i += 4) if (pixels[i + 3] > 200) colors.add((pixels[i] << 16) + (pixels[i + 1] << 8) + pixels[i + 2]);
          let off = 0;
          if (figure.given.kind === 'lines') chart.data.datasets.forEach((set, s) => chart.getDatasetMeta(s).data.forEach((point, i) => {
            const value = set.data[i].y;
            if (value !== null) off = Math.max(off, Math.abs(point.y - chart.scales.y.getPixelForValue(value)));
          }));
          const own = figure.given.series.filter((_, i) => figure.given.kind === 'lanes' || chart.isDatasetVisible(i)).map((one) =>
            parseInt(getComputedStyle(document.documentElement).getPropertyValue('--c' + one.color).trim().slice(1), 16));
          return {id: figure.given.id, colors: colors.size, off, own: figure.given.kind === 'areas' || own.some((one) => colors.has(one)), label: figure.canvas.getAttribute('aria-label')}; });"""):
        check(found["colors"] >= 2 and found["own"], f"{found['id']}: nothing is drawn in the colours of the legend")
        check(found["off"] < 1, f"{found['id']}: a point is {found['off']} pixels off")
        check(found["label"] and len(found["label"]) > 20, f"{found['id']}: no text for screen readers")


def view(browser, chart):
    return browser.run(f"{FIGURE % json.dumps(chart)} return [figure.chart.scales.x.min * figure.x.factor, figure.chart.scales.x.max * figure.x.factor];")


def center(browser, chart):
    """Where its plot is on the screen, after scrolling there: left, right, middle."""
    return browser.run(f"""{FIGURE % json.dumps(chart)} figure.node.scrollIntoView({{block: 'center', behavior: 'instant'}});
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        const box = figure.canvas.getBoundingClientRect(), area = figure.chart.chartArea;
        return [box.left + area.left, box.left + area.right, box.top + (area.top + area.bottom) / 2];""")


def use_it(browser, chart, other):
    whole = view(browser, chart)
    span = whole[1] - whole[0]
    # Drag over the middle half; other charts over time follow.
    left, right, y = center(browser, chart)
    a, b = left + (right - left) / 4, right - (right - left) / 4
    browser.mouse("mousePressed", a, y, button="left", clickCount=1)
    browser.mouse("mouseMoved", (a + b) / 2, y, button="left")
    browser.mouse("mouseReleased", b, y, button="left", clickCount=1)
    for name in (chart, other):
        low, high = view(browser, name)
        check(abs(high - low - span / 2) < span / 20, f"{name}: after dragging it shows {low} to {high} of {whole}")
    # The mouse reads values.
    browser.mouse("mouseMoved", (left + right) / 2, y)
    check(browser.run(f"{FIGURE % json.dumps(chart)} return !figure.tip.hidden && figure.tip.textContent.length > 5"), "no tip below the mouse")
    # The keyboard: a value, zoom, back.
    browser.run(f"{FIGURE % json.dumps(chart)} figure.node.focus()")
    browser.key("0")
    check(all(near(x, y) for x, y in zip(view(browser, chart), whole)), "0 does not show the whole again")
    browser.key("ArrowRight")
    said = browser.run("return document.getElementById('said').textContent")
    check(": " in said, f"the arrow says '{said}'")
    browser.key("+")
    low, high = view(browser, chart)
    check(abs(high - low - span / 2) < span / 20, "+ does not zoom")
    browser.run(f"{FIGURE % json.dumps(chart)} figure.node.querySelector('[aria-label=\"Reset the zoom\"]').click()")
    check(all(near(x, y) for x, y in zip(view(browser, chart), whole)), "Reset does not show the whole again")
    # The legend hides a series.
    hidden = browser.run(f"""{FIGURE % json.dumps(chart)} figure.legend[0].click();
        return [figure.legend[0].getAttribute('aria-pressed'), figure.chart.isDatasetVisible(0)];""")
    check(hidden == ["false", False], f"the legend hides nothing: {hidden}")
    browser.run(f"{FIGURE % json.dumps(chart)} figure.legend[0].click()")
    # The table behind it.
    rows = browser.run(f"""{FIGURE % json.dumps(chart)} const details = figure.node.querySelector('details'); details.open = true;
        await new Promise((done) => setTimeout(done, 50)); return [details.querySelectorAll('tbody tr').length, figure.given.x.length];""")
    check(rows[0] == rows[1], f"{rows[0]} rows in the table of {rows[1]} values")


def check_themes(browser):
    paper = "return getComputedStyle(document.body).backgroundColor"
    brightness = lambda: sum(int(one) for one in browser.run(paper).removeprefix("rgb(").removesuffix(")").split(","))  # noqa: E731
    for scheme, dark in (("dark", True), ("light", False)):
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        check((brightness() < 200) == dark, f"the page is not {scheme} where the system is")
    click = "document.getElementById('theme').click()"
    browser.run(click)  # light
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    check(brightness() > 500, "the switch does not make it light")
    browser.run(click)  # dark
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    check(brightness() < 200, "the switch does not make it dark")
    browser.run(click)  # as the system


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path, help="of the same analysis: compare with it")
    parser.add_argument("--shows", action="append", default=[], metavar="TEXT", help="must be seen on the page")
    parser.add_argument("--screenshot", metavar="PNG", help="of the whole page; a second one, PNG-dark, in dark")
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="reprise-chromium-", ignore_cleanup_errors=True) as profile:
        browser = Browser(options.chromium, profile, [1400, 1000])
        try:
            ready = opened(browser, options.page)
            out = {"ready_ms": ready, "bytes": options.page.stat().st_size, "charts": browser.run("return reprisePage.figures.length")}
            check_pixels(browser)
            for text in options.shows:
                check(text in browser.run("return document.body.innerText"), f"'{text}' is not on the page")
            if options.json:
                out["compared"] = compare_with_json(browser, json.loads(options.json.read_text())["logs"][0])
                use_it(browser, "throughput", "iops")
                check_themes(browser)
            check(browser.run("return window.hacked === undefined && !document.querySelector('img, iframe, object')"), "a name became code")
            if options.screenshot:
                for scheme, name in (("light", options.screenshot), ("dark", options.screenshot.replace(".png", "-dark.png"))):
                    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                    height = browser.run("window.scrollTo(0, 0); return document.documentElement.scrollHeight")
                    browser.call("Emulation.setDeviceMetricsOverride", width=1400, height=min(height, 12000), deviceScaleFactor=1, mobile=False)
                    time.sleep(0.5)
                    browser.screenshot(name)
            out["console"] = browser.said + browser.console
            check(not out["console"], f"on the console: {out['console']}")
        finally:
            browser.close()
    out["wrong"] = wrong
    json.dump(out, sys.stdout, indent=1)
    print()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

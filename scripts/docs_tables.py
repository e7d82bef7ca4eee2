#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Renders the measured tables and the chart of the documentation from docs/data/*.json.

usage: scripts/docs_tables.py            write them
       scripts/docs_tables.py --check    exit 1 if a page differs from its data

The data files are written by `tests/bench/run.sh --write-docs`, `tests/bench/many.py --write-docs`,
`tests/bench/ranks.py --write-docs`, `tests/bench/cluster/shared.py --write-docs`, `tests/bench/scaling/truth.py --write-docs`, `tests/bench/predict/syncs.py --write-docs`,
`tests/bench/cluster/faults.py --write-docs`, `tests/bench/cluster/steps.py --write-docs`, `tests/bench/dlio/dlio.py --write-docs`,
`tests/bench/accuracy/fit_jobs.py --write-docs`, `tests/bench/dlio/fit_beside.py --write-docs`,
`tests/bench/bench_limit.py --write-docs`, `tests/bench/bench_content.py --write-docs` and `tests/bench/accuracy/run.sh --write-docs`. Tables stand between `<!-- NAME: begin -->` and `<!-- NAME: end -->`;
never edit them by hand.
"""

import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
DATA = TOP / "docs" / "data"
GROUPS = {
    "warm": "Same storage, warm cache",
    "cold": "Same storage, cold cache",
    "slower": "Recorded on fast storage, replayed on slow",
    "faster": "Recorded on slow storage, replayed on fast",
    "au": "Accelerator utilisation (AU) on slower storage",
    "gpu": "A faster accelerator (`--gpu-speed`)",
    "handover": "Hand-over in memory, without a system call",
    "requests-fio": "Requests in flight: fio, by engine, size and depth",
    "requests-known": "Requests in flight: programs whose causes are known",
    "requests-programs": "Requests in flight: programs not written for reprise",
    "programs": "Programs not written for reprise",
}


def load(name):
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def save(name, data):
    DATA.mkdir(parents=True, exist_ok=True)
    (DATA / f"{name}.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def table(head, rows):
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows), ""]


# --- benchmarks


def number(value):
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.3g}" if abs(value) >= 1 else f"{value:.2f}"


def quantity(value, unit):
    return "" if value is None else f"{number(value)} {unit}".strip()


def benchmark_lines(data):
    lines = [f"{data['machine']}; {data['date']}; `{data['command']}`.", ""]
    rows = []
    for row in data["rows"]:
        met = {True: "yes", False: "**no**", None: ""}[row["met"]]
        measured = "not measured" if row["value"] is None else quantity(row["value"], row["unit"])
        rows.append((row["what"], row["asked"], measured, met, quantity(row.get("before"), row["unit"])))
    lines += table(("what", "goal", "measured", "met", "run before"), rows)
    judged = [row["met"] for row in data["rows"] if row["met"] is not None]
    lines += [f"{sum(judged)} of {len(judged)} goals met.", ""]
    return lines + notes(data)


def keep_before(new, old):
    """Each row of `new` gets the value that the row of that name had in `old`."""
    values = {row["what"]: row["value"] for row in old["rows"]}
    for row in new["rows"]:
        if values.get(row["what"]) is not None:
            row["before"] = values[row["what"]]
    return new


def notes(data):
    return [*(f"- {note}" for note in data.get("notes", [])), *([""] if data.get("notes") else [])]


# --- accuracy


def figure(value, judge, digits=2):
    if value is None:
        return "?"
    digits, unit = (1, " %") if judge == "au" else (digits, "")
    text = f"{value['median']:.{digits}f}{unit}"
    return text if "least" not in value else f"{text} ({value['least']:.{digits}f}–{value['most']:.{digits}f})"


def signed(value):
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text


def error(cell):
    unit = "points" if cell["judge"] == "au" else "%"
    text = "?" if cell["error"] is None else f"{signed(cell['error'])} {unit}"
    return text if cell["met"] else f"**{text}**"


def spans(cells):
    return [abs(cell["error"]) for cell in cells if cell["judge"] == "span" and cell["error"] is not None]


# Asked of the means over a group: the signed one and the absolute one, in percent.
MEAN_GOALS = {"warm": (1, 2), "cold": (1, 2), "slower": (1, 2), "faster": (1.5, 2.5), "requests-fio": (3, 3)}
PREDICTION_GOALS = (10, 4)  # percent: of each cell, of the mean of the absolute ones


def job_name(cell):
    marks = [text for key, text in (("event_loop", "event loop"), ("late", "written after the code")) if cell.get(key)]
    return cell["cell"] + (f" ({', '.join(marks)})" if marks else "")


def own_spread(cell):
    """The range of the real job's runs; an error within it is not ours to explain."""
    if cell.get("own_spread") is None:
        return ""
    return f"{cell['own_spread']:.1f} %" + (f" of {cell['real_runs']}" if cell["real_runs"] < 5 else "")


def prediction(cell):
    if cell.get("predicted_error") is None:
        return ""
    text = f"{signed(cell['predicted_error'])} {'points' if cell['judge'] == 'au' else '%'}"
    return text if cell["predicted_met"] else f"**{text}**"


def interval(cell):
    """What was stated, and whether the real job's median lies in it; one that is wider than asked for is said to be."""
    if "interval" not in cell:
        return ""
    digits, unit = (1, " %") if cell["judge"] == "au" else (2, "")
    text = f"{cell['interval'][0]:.{digits}f}–{cell['interval'][1]:.{digits}f}{unit}"
    text += "" if cell["inside"] else ", **missed**"
    return text + (", **wide**" if cell["narrow"] is False else "")


def in_flight(cell):
    """Means over time, the job's there and the replay's, and how far the distributions are apart, in percent of the depth."""
    if "in_flight" not in cell:
        return ""
    found = cell["in_flight"]
    off = f"{found['off']:.1f} %"
    return f"{found['there']:.1f}, {found['replayed']:.1f}; {off if found['met'] else f'**{off}**'}"


# Columns that only newer runs have.
MORE_COLUMNS = (("in flight there, replay; apart", "in_flight", in_flight), ("own spread", "own_spread", own_spread), ("predicted", "predicted_error", prediction),
                ("stated interval", "interval", interval), ("cells that", "part", lambda cell: {"fit": "fit", "judge": "judge"}.get(cell.get("part"), "")))


def mean_line(cells):
    if len(spans(cells)) < 2:
        return []
    text = f"Mean error {statistics.mean(spans(cells)):.1f} %"
    signs = [cell["error"] for cell in cells if cell["judge"] == "span" and cell["error"] is not None]
    if goal := MEAN_GOALS.get(cells[0]["group"]):
        text += f" (goal {goal[1]:g}), signed {signed(statistics.mean(signs))} % (goal ±{goal[0]:g})"
    return [text + ".", ""]


def job_lines(cells):
    rows = []
    more = [(title, make) for title, key, make in MORE_COLUMNS if any(cell.get(key) is not None for cell in cells)]
    for cell in cells:
        unit = "points" if cell["judge"] == "au" else "%"
        rows.append((job_name(cell), *(figure(cell[key], cell["judge"]) for key in ("recorded", "real", "replayed")), error(cell),
                     f"{cell['bar']:g} {unit}", *(make(cell) for _, make in more)))
    lines = table(("job", "recorded", "real job there", "replay there", "error", "goal", *(title for title, _ in more)), rows)
    return lines + mean_line(cells)


def program_lines(cells):
    """One table per program: a row for each place it was recorded at, a column for each place it ran at."""
    lines, by_program = [], {}
    for cell in cells:
        program, places = cell["cell"].split(", ")
        by_program.setdefault(program, {})[tuple(places.split(" to "))] = cell
    for program, found in by_program.items():
        targets = list(dict.fromkeys(target for _, target in found))
        sources = list(dict.fromkeys(source for source, _ in found))
        real = {target: next(found[key] for key in found if key[1] == target)["real"] for target in targets}
        rows = [("the real program, s", *(figure(real[target], "span", 3) for target in targets))]
        for source in sources:
            rows.append((f"recorded on {source}", *(error(found[source, target]) if (source, target) in found else "" for target in targets)))
        if any(cell.get("predicted_error") is not None for cell in found.values()):
            for source in sources:
                rows.append((f"predicted from {source}", *(prediction(found[source, target]) if (source, target) in found else "" for target in targets)))
        if any(cell.get("own_spread") is not None for cell in found.values()):
            rows.append(("its own spread", *(own_spread(next(found[key] for key in found if key[1] == target)) for target in targets)))
        if any("interval" in cell for cell in found.values()):
            rows.append(("stated intervals that hold it", *(f"{sum(cell.get('inside', False) for key, cell in found.items() if key[1] == target)} of "
                                                           f"{sum('interval' in cell for key, cell in found.items() if key[1] == target)}" for target in targets)))
        lines += table((f"**{program}**", *(f"on {target}" for target in targets)), rows)
    errors = spans(cells)
    return lines + [f"{len(errors)} comparisons: mean error {statistics.mean(errors):.1f} %, median {statistics.median(errors):.1f} %, greatest "
                    f"{max(errors):.1f} %; {sum(cell['met'] for cell in cells)} within {cells[0]['bar']:g} %.", ""]


def run_lines(run, before=()):
    """`before`: groups of earlier runs, whose headings are taken."""
    lines = []
    for group, title in GROUPS.items():
        if mine := [cell for cell in run["cells"] if cell["group"] == group]:
            lines += [f"### {title}{', another run' * (group in before)}", "", *(program_lines if group == "programs" else job_lines)(mine)]
    counts = sorted({cell["rounds"] for cell in run["cells"]})
    rounds = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    about = f"{run['machine']}; {run['date']}; `{run['command']}`; {rounds} rounds in turn, medians (least–most)."
    if steal := run.get("steal_percent"):
        about += f" Steal time {steal['median']:.1f} % in the median, {steal['most']:.1f} % at most; runs above {steal['repeat_above']:g} % were repeated."
    lines += [about, ""]
    if own := run.get("itself"):
        missed = own["replays_mean"] > own["mean"]
        lines += [f"The real program compared with itself, {rounds} runs beside each cell against all runs at that place "
                  f"({own['cells']} cells): mean difference {own['mean']:.1f} %, greatest {own['greatest']:.1f} %, {own['within']} within "
                  f"{own['bar']:g} %. The replays in those cells: mean error {'**' * missed}{own['replays_mean']:.1f} %{'**' * missed} (goal: not more than the program's own).", ""]
    return lines + prediction_lines(run["cells"]) + interval_lines(run["cells"]) + notes(run)


def prediction_lines(cells):
    found = [cell for cell in cells if cell["judge"] == "span" and cell.get("predicted_error") is not None]
    if not found:
        return []
    errors = [abs(cell["predicted_error"]) for cell in found]
    return [f"Predicted from the recording and a model of the storage (`reprise predict`, {len(found)} comparisons): mean error {statistics.mean(errors):.1f} % "
            f"(goal {PREDICTION_GOALS[1]}), greatest {max(errors):.1f} %, {sum(cell['predicted_met'] for cell in found)} within {PREDICTION_GOALS[0]} %.", ""]


def interval_lines(cells):
    """Apart: cells that intervals were fitted to say nothing about whether they hold."""
    lines = []
    for part, what in (("judge", "of jobs that no interval was fitted to"), ("fit", "of jobs that they were fitted to")):
        mine = [cell for cell in cells if "interval" in cell and cell["part"] == part]
        if not mine:
            continue
        narrow = [cell for cell in mine if cell["narrow"] is not None]
        lines += [f"Stated intervals, {len(mine)} cells {what}: {sum(cell['inside'] for cell in mine)} ({100 * sum(cell['inside'] for cell in mine) / len(mine):.0f} %) "
                  f"hold the real job's median; {sum(cell['narrow'] for cell in narrow)} of {len(narrow)} are at most twice its own range plus 3 % wide.", ""]
    return lines


def is_job(cell):
    """Neither a program that was not written for reprise nor a benchmark of requests."""
    return cell["group"] != "programs" and not cell["group"].startswith("requests")


def accuracy_lines(data):
    cells = [cell for run in data["runs"] for cell in run["cells"] if is_job(cell)]
    lines = []
    if cells:
        lines = [f"Training jobs and loaders: {sum(cell['met'] for cell in cells)} of {len(cells)} comparisons within their goal (others bold), "
                 f"mean error {statistics.mean(spans(cells)):.1f} %. Seconds of the job's loop, except AU.", ""]
    before = []
    for run in data["runs"]:
        lines += run_lines(run, before)
        before += [cell["group"] for cell in run["cells"]]
    return lines


def merge_run(data, run):
    """Cells measured anew leave the run they were in; what was said of such a run goes with them."""
    new = {(cell["group"], cell["cell"]) for cell in run["cells"]}
    kept = []
    for old in data["runs"]:
        rest = [cell for cell in old["cells"] if (cell["group"], cell["cell"]) not in new]
        if len(rest) == len(old["cells"]):
            kept.append(old)
        elif rest:
            kept.append({key: value for key, value in old.items() if key not in ("notes", "itself")} | {"cells": rest})
    order = list(GROUPS)
    return {"runs": sorted([*kept, run], key=lambda one: order.index(one["cells"][0]["group"]))}


# --- the README's figures


def headline_lines(accuracy, benchmarks):
    jobs = [cell for run in accuracy["runs"] for cell in run["cells"] if is_job(cell) and cell["judge"] == "span" and cell["error"] is not None]
    programs = [cell for run in accuracy["runs"] for cell in run["cells"] if cell["group"] == "programs"]
    bound = [cell for cell in programs if cell["cell"].endswith(" to xfs-50")]
    own = next((run["itself"] for run in accuracy["runs"] if "itself" in run), None)
    value = {row["what"]: row["value"] for row in benchmarks["rows"]}
    lines = [f"- **{statistics.mean(spans(jobs)):.1f} %** mean error in elapsed time, replay against the real job on the target, over {len(jobs)} "
             f"comparisons of training jobs and loaders (greatest {max(spans(jobs)):.1f} %).",
             f"- **{max(spans(bound)):.1f} %** greatest error of {len(bound)} comparisons of sqlite, tar and rsync where storage is the bottleneck."]
    call, strace = value.get("recording, cached 4 KiB pread"), value.get("… strace")
    if call and strace:
        lines.append(f"- **{call / 1000:.1f} µs** is what recording adds to a cached 4 KiB read ({strace / 1000:,.0f} µs with strace).")
    line = f"- Errors are larger where compute decides: over all {len(programs)} comparisons of sqlite, tar and rsync " \
           f"{statistics.mean(spans(programs)):.1f} % in the mean, {max(spans(programs)):.0f} % at most."
    return [*lines, line + (f" Repeated runs of the real programs on that shared machine vary by {own['mean']:.1f} %." if own else "")]


# --- the chart

INK = """<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328 } .dim { fill: #59636e } .bold { font-weight: 600; font-size: 14px }
.back { fill: #ffffff } .grid { stroke: #d1d9e0 } .was { fill: none; stroke: #818b98; stroke-width: 1.5 } .job { fill: #0969da }
.bar { stroke: #0969da; stroke-width: 2; opacity: .45 } .ours { fill: none; stroke: #cf5b00; stroke-width: 2 }
.said { fill: #cf5b00; opacity: .22 } .missed { fill: #d1242f; opacity: .4 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .dim { fill: #9198a1 } .back { fill: #0d1117 } .grid { stroke: #3d444d } .was { stroke: #9198a1 }
.job { fill: #4493f8 } .bar { stroke: #4493f8 } .ours { stroke: #f0883e } .said { fill: #f0883e } .missed { fill: #f85149 } }
</style>"""
# Seconds on the left; on the right the same, nearer: percent of the real job's median, up to NEAR on both sides.
LEFT, MIDDLE, RIGHT, WIDTH, ROW, TOP_ROW, NEAR = 300, 640, 664, 960, 19, 66, 15


def charted(data, requests=False):
    """Comparisons of seconds; of the many of the programs those where something was stated."""
    return [cell for run in data["runs"] for cell in run["cells"]
            if cell["judge"] == "span" and cell["error"] is not None and cell["group"].startswith("requests") == requests
            and (cell["group"] != "programs" or "interval" in cell)]


def chart(data, requests=False):
    """Recorded, real and replayed seconds of every job, one row each, and how well the replay and its stated interval hit."""
    cells = charted(data, requests)
    groups = [group for group in GROUPS if any(cell["group"] == group for cell in cells)]
    most = max(cell[key].get("most", cell[key]["median"]) for cell in cells for key in ("recorded", "real", "replayed"))
    step = next(step for step in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if most / step <= 8)
    scale = (MIDDLE - LEFT) / most
    height = TOP_ROW + ROW * (len(cells) + len(groups)) + 34
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img" '
           f'aria-label="Real jobs beside their replays">', INK, f'<rect class="back" width="{WIDTH}" height="{height}" rx="8"/>',
           '<text class="bold" x="16" y="24">The real job on a storage system, and its replay there</text>']
    marks = [('<circle class="job" cx="{0}" cy="42" r="4.5"/><line class="bar" x1="{1}" x2="{2}" y1="42" y2="42"/>', "real job, median and range", 204),
             ('<path class="ours" d="M{0} 37v10"/>', "replay, median", 130), ('<circle class="was" cx="{0}" cy="42" r="4"/>', "time in the recording", 160)]
    if any("interval" in cell for cell in cells):
        marks.append(('<rect class="said" x="{1}" y="36" width="16" height="12"/>', "stated interval (red: misses the job)", 250))
    x = 16
    for shape, label, wide in marks:
        out.append(shape.format(x + 6, x - 2, x + 14) + f'<text class="dim" x="{x + 20}" y="46">{label}</text>')
        x += wide
    bottom = height - 30
    ticks = [(LEFT + tick * step * scale, f"{tick * step:g} s") for tick in range(int(most / step) + 1)]
    ticks += [(near(percent), f"{percent:+d} %" if percent else "0") for percent in (-10, 0, 10)]
    for at, label in ticks:
        out.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP_ROW - 8}" y2="{bottom}"/>'
                   f'<text class="dim" x="{at:.1f}" y="{bottom + 17}" text-anchor="middle">{label}</text>')
    y = TOP_ROW
    for group in groups:
        out.append(f'<text class="dim" x="16" y="{y + 10}">{GROUPS[group].replace(" (`--gpu-speed`)", "")}</text>')
        y += ROW
        for cell in (cell for cell in cells if cell["group"] == group):
            out.append(chart_row(cell, y + 6, scale))
            y += ROW
    return "\n".join([*out, "</svg>"]) + "\n"


def near(percent):
    """Where the right part has it; what is beyond lies on its edge."""
    share = (min(max(percent, -NEAR), NEAR) + NEAR) / (2 * NEAR)
    return RIGHT + share * (WIDTH - 80 - RIGHT)


def chart_row(cell, y, scale):
    def at(value):
        return f"{LEFT + value * scale:.1f}"

    def beside(value):
        return near(100 * (value / real["median"] - 1))

    real = cell["real"]
    least, most = real.get("least", real["median"]), real.get("most", real["median"])
    out = [f'<text x="30" y="{y + 4}">{cell["cell"]}</text>'
           f'<circle class="was" cx="{at(cell["recorded"]["median"])}" cy="{y}" r="4"/>'
           f'<line class="bar" x1="{at(least)}" x2="{at(most)}" y1="{y}" y2="{y}"/>'
           f'<circle class="job" cx="{at(real["median"])}" cy="{y}" r="4.5"/>'
           f'<path class="ours" d="M{at(cell["replayed"]["median"])} {y - 7}v14"/>']
    if "interval" in cell:
        begin, end = (beside(bound) for bound in cell["interval"])
        kind = "said" if cell["inside"] else "missed"
        out.append(f'<rect class="{kind}" x="{begin:.1f}" y="{y - 6}" width="{max(end - begin, 1):.1f}" height="12"/>')
    out.append(f'<line class="bar" x1="{beside(least):.1f}" x2="{beside(most):.1f}" y1="{y}" y2="{y}"/>'
               f'<circle class="job" cx="{near(0):.1f}" cy="{y}" r="3"/>'
               f'<path class="ours" d="M{beside(cell["replayed"]["median"]):.1f} {y - 7}v14"/>'
               f'<text x="{WIDTH - 16}" y="{y + 4}" text-anchor="end">{signed(cell["error"])} %</text>')
    return "".join(out)


# --- memory limits, content


def limit_lines(data):
    lines = [f"{data['machine']}; {data['date']}; {data['mib']} MiB of data, three epochs; `tests/bench/bench_limit.py`.", ""]
    head = ("ratio", "limit", "job's own, at most", "peak of the limit", "full", "killed", "ballast off by", "in memory before")
    rows = [(f"{row['ratio']:g}", f"{row['limit_mib']:.0f} MiB", f"{row['job_mib']:.1f} MiB", f"{row['peak']:.1f} %", f"{row['full']:,} times",
             str(row["killed"]), f"{row['ballast_off']:.1f} %", f"{row['resident_before']:.0%}") for row in data["rows"]]
    return [*lines, *table(head, rows)]


def content_lines(data):
    lines = [f"{data['date']}; each file for itself; `tests/bench/bench_content.py`.", ""]
    def cells(row, tool):
        return (f"{100 * row[tool] / row['bytes']:.1f} %", f"{100 * row[tool + '_here'] / row['bytes']:.1f} %", f"{row[tool + '_off']:+.1f} %")
    head = ("files", "`zstd -1`, recorded", "prepared", "off by", "`lz4 -1`, recorded", "prepared", "off by")
    return [*lines, *table(head, [(f"{row['kind']} ({row['files']})", *cells(row, "zstd"), *cells(row, "lz4")) for row in data["rows"]])]


# --- pages

KEPT = {"shared": "docs/scale.md", "steps": "docs/scale.md", "faults": "docs/scale.md", "dlio": "docs/jobs-dlio.md", "fitted": "docs/fit.md",
        "beside": "docs/fit.md", "scaled": "docs/scaling.md", "syncs": "docs/predict.md"}  # tables of tables.json


def between(text, name, lines, path):
    body = "\n".join(lines).rstrip("\n")
    found, count = re.subn(rf"(<!-- {name}: begin -->\n).*?(<!-- {name}: end -->)", lambda m: f"{m[1]}{body}\n{m[2]}", text, flags=re.S)
    if count != 1:
        sys.exit(f"docs_tables: {path}: expected one pair of markers '<!-- {name}: begin -->', '<!-- {name}: end -->'")
    return found


def keep_table(name, lines, command, add=False):
    """Keeps a table that a benchmark made, `lines` of Markdown, and writes the page that it is for. `add`: rows that the table has
    already, and that were not measured now, stay; rows are told apart by their first cell."""
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if line.startswith("model name")), "?")
    data = load("tables")
    if add and name in data and data[name]["table"][:2] == lines[:2]:
        new = {line.split("|")[1]: line for line in lines[2:]}
        old = {line.split("|")[1]: line for line in data[name]["table"][2:]}
        lines = [*lines[:2], *(old | new).values()]
    data[name] = {"machine": f"{os.cpu_count()} x {cpu}, Linux {platform.release()}", "date": datetime.date.today().isoformat(), "command": command,
                  "table": lines}
    save("tables", data)
    write()


def kept_lines(data, name):
    """The lines of a kept table, under its machine and command."""
    part = data[name]
    return [f"{part['machine']}; {part['date']}; `{part['command']}`.", "", *part["table"]]


def pages():
    """Path -> what it has to hold."""
    benchmarks, accuracy, tables = load("benchmarks"), load("accuracy"), load("tables")
    parts = [("docs/benchmarks.md", "benchmarks", benchmark_lines(benchmarks)), ("docs/benchmarks.md", "many", benchmark_lines(load("many"))),
             ("docs/scale.md", "ranks", benchmark_lines(load("ranks"))),
             *((path, name, kept_lines(tables, name)) for name, path in KEPT.items() if name in tables),
             ("docs/accuracy.md", "accuracy", accuracy_lines(accuracy)),
             ("docs/prepare.md", "content", content_lines(load("content"))),
             ("docs/ratios.md", "limit", limit_lines(load("limit"))), ("README.md", "headline", headline_lines(accuracy, benchmarks))]
    found = {}
    for path, name, lines in parts:
        found[path] = between(found.get(path) or (TOP / path).read_text(encoding="utf-8"), name, lines, path)
    if charted(accuracy, requests=True):
        found["docs/accuracy-requests.svg"] = chart(accuracy, requests=True)
    return found | {"docs/accuracy.svg": chart(accuracy)}


def write():
    for path, text in pages().items():
        (TOP / path).write_text(text, encoding="utf-8")


def check():
    stale = [path for path, text in pages().items() if not (TOP / path).exists() or (TOP / path).read_text(encoding="utf-8") != text]
    for path in stale:
        print(f"{path}: differs from docs/data; run scripts/docs_tables.py")
    return 1 if stale else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(check())
    if sys.argv[1:]:
        sys.exit(__doc__)
    write()

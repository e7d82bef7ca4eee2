#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: table.py FOLDER [--write-docs]

Prints the table of tests/bench/run.sh from the outputs in FOLDER and writes FOLDER/benchmarks.json; with --write-docs the
documentation gets it too. Exits 1 if an output lacks a number, 0 otherwise: a missed goal is a row, not an error. Where
only some parts were measured, the other rows stay those of the documentation, and a note says so."""
import datetime
import json
import pathlib
import platform
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import docs_tables  # noqa: E402

folder = pathlib.Path(sys.argv[1])


def google(name):
    """Median of each counter per benchmark."""
    found = {}
    if not (folder / f"{name}.txt").exists():
        return found
    for row in json.loads((folder / f"{name}.txt").read_text())["benchmarks"]:
        if row.get("run_type") == "aggregate" or row.get("error_occurred"):
            continue
        base = row["run_name"].removesuffix("/iterations:1").removesuffix("/repeats:3")
        for key in ("ops/s", "bytes/op", "events/s", "read_peak_MiB"):
            if key in row:
                found.setdefault(base, {}).setdefault(key, []).append(row[key])
    return {base: {key: statistics.median(values) for key, values in row.items()} for base, row in found.items()}


def output(name):
    path = folder / f"{name}.txt"
    return path.read_text() if path.exists() else ""


parts = (folder / "parts").read_text().split() if (folder / "parts").exists() else []  # none: all were measured
oplog, imports = google("oplog"), google("import")
replay, prepare = output("replay"), output("prepare")
rows, notes = [], []


def number(text, pattern):
    found = re.search(pattern, text, re.S)
    return float(found[1]) if found else None


def row(what, asked, value, unit, good=None):
    met = None if good is None or value is None else bool(good(value))
    rows.append({"what": what, "asked": asked, "value": value if value is None else round(value, 4), "unit": unit, "met": met})


def least(limit):
    return lambda value: value >= limit


def most(limit):
    return lambda value: value <= limit


def below(limit):
    return lambda value: value < limit


def counter(table, name, key, scale=1.0):
    value = table.get(name, {}).get(key)
    return None if value is None else value / scale


def fastest_other(title):
    """Smallest 'prepare is X x as fast' below a heading."""
    part = re.search(title + r"[^\n]*\n((?:  [^\n]*\n)+)", prepare)
    ratios = re.findall(r"prepare is ([\d.]+) x", part[1]) if part else []
    return min(map(float, ratios)) if ratios else None


for name, label, limit in (("era5_file1", "ERA5 file 1", 3.0), ("era5_file3", "ERA5 file 3", 3.0),
                           ("unet3d_npz", "Unet3D npz", 1.6), ("cm1", "CM1", 2.0)):
    row(f"op log size, {label}", f"≤ {limit} B/op", counter(oplog, f"decode/{name}", "bytes/op"), "B/op", most(limit))
row("decode, one core, ERA5", "≥ 30 M ops/s", counter(oplog, "decode/era5_file1", "ops/s", 1e6), "M ops/s", least(30))
row("memory to read 100 M ops", "< 256 MiB", counter(oplog, "long_log", "read_peak_MiB"), "MiB", most(256))
row("encode, one core, ERA5", "≥ 5 M ops/s", counter(oplog, "encode/era5_file1", "ops/s", 1e6), "M ops/s", least(5))
for prefix, tool in (("import/", "DFTracer"), ("import_darshan/", "Darshan DXT")):
    for name in sorted(name for name in imports if name.startswith(prefix)):
        row(f"import {tool}, one core, {name.removeprefix(prefix)}", "≥ 1 M events/s", counter(imports, name, "events/s", 1e6),
            "M events/s", least(1))
analyze = output("analyze")
row("analyze 10 M ops, page included, one core", "≤ 5 s", number(analyze, r"ops: ([\d.]+) s"), "s", most(5))
row("… memory", "≤ 512 MiB", number(analyze, r"its time, (\d+) MiB"), "MiB", most(512))
row("… page", "≤ 5 MB", number(analyze, r"page ([\d.]+) MB"), "MB", most(5))
if (folder / "page.txt").exists():
    row("… page ready in Chromium", "≤ 1000 ms", json.loads((folder / "page.txt").read_text())["ready_ms"], "ms", most(1000))
elif not parts:
    notes.append("How soon a page is ready was not measured: Chromium is not installed.")
row("… finding the causes for its predictions", "", number(analyze, r"planning: ([\d.]+) s"), "s")
for what in ("storage", "processor", "accelerator"):
    row(f"… prediction with infinitely fast {what}", "≤ 5 s", number(analyze, rf"infinitely_fast_{what}: ([\d.]+) s"), "s", most(5))
row("afap, 1 M cached 4 KiB preads: of a bare loop's speed", "≥ 90 %", number(replay, r"pread:.*?([\d.]+) % of the bare loop"), "%", least(90))
row("… of fio `read_iolog`, psync", "≥ 8 x", number(replay, r"replay is ([\d.]+) x that \(at least 8\)"), "x", least(8))
row("… of fio `read_iolog`, file kept in the cache", "≥ 8 x", number(replay, r"invalidate=0.*?replay is ([\d.]+) x that\n"), "x",
    least(8))
row("… of fio `read_iolog`, libaio", "≥ 8 x", number(replay, r"replay is ([\d.]+) x that, with libaio"), "x", least(8))
row("afap, 100 000 x open, fstat, read, close: of a bare loop's speed", "≥ 90 %",
    number(replay, r"open: 100 000.*?([\d.]+) % of the bare loop"), "%", least(90))
row("null engine, per core", "≥ 10 M ops/s", number(replay, r"loop alone = ([\d.]+) M ops/s"), "M ops/s", least(10))
row("null engine, with start and collection", "≥ 10 M ops/s", number(replay, r"replay --engine null[^\n]*?([\d.]+) M ops/s"), "M ops/s", least(10))
row("timed, 4 threads x 200 cycles: elapsed differs by", "≤ 0.5 %", number(replay, r"elapsed differs by (-?[\d.]+) %"), "%",
    lambda value: abs(value) <= 0.5)
row("prepare, one file of 2 GiB: of the fastest of dd and fio", "≥ 90 %",
    (lambda x: None if x is None else x * 100)(fastest_other("one file of")), "%", least(90))
row("… of `dd bs=4M conv=fsync`", "≥ 90 %", (lambda x: None if x is None else x * 100)(number(prepare, r"dd bs=4M conv=fsync [^\n]*prepare is ([\d.]+) x")),
    "%", least(90))
row("prepare, 1 M empty files in 100 directories: of a bare loop's speed", "≥ 100 %",
    (lambda x: None if x is None else x * 100)(fastest_other("empty files in 100")), "%", least(100))
row("prepare, 1 M empty files in one directory: of a bare loop's speed", "≥ 100 %",
    (lambda x: None if x is None else x * 100)(fastest_other("empty files in one")), "%", least(100))


def clockwork(measured):
    """Rows of bench_delay: what delays, accelerators and edges of a replay add of their own."""
    for target, what, limit in ((50, "50 µs", 0.5), (1000, "1 ms", 0.2), (10000, "10 ms", 0.1)):
        rows = [r for r in measured.get("delay", []) if r["target_us"] == target and r["threads"] <= measured["cpus"]]

        def worst(key):
            return max((abs(r[key]) for r in rows), default=None)

        total = worst("total_error")
        row(f"10 000 delays of {what}, one thread and one per core, the worse: total error", f"≤ {limit} %", None if total is None else total * 100, "%",
            most(limit))
        row(f"… {what}, p50", "< 0.2 µs", worst("p50_us"), "µs", below(0.2))
        row(f"… {what}, p99", "< 100 µs", worst("p99_us"), "µs", below(100))
    for r in measured.get("dlrm", []) or [None]:
        what = "DLRM-like steps of 375 µs: AU"
        if r is None:
            row(what, "≥ 98 %", None, "%", least(98))
        else:
            what = f"{what}, {r['what']}" + (f", {r['loaders']} loaders" if r["loaders"] > 1 else "")
            if r["bytes"] > 1 << 20 and "null" not in r["what"]:  # processors copy for longer than a step
                row(what, "", r["au"] * 100, "%")
            else:
                row(what, "≥ 98 %", r["au"] * 100, "%", least(98))
    edges = measured.get("edges", {})
    row("causal, an op without an edge: beyond afap", "≤ 100 ns", edges.get("op_beyond_ns"), "ns", most(100))
    for key, what in (("wake", "the waiter spins"), ("sleeping_wake", "the waiter sleeps")):
        bare, beyond = edges.get(key + "_bare_ns"), edges.get(key + "_beyond_ns")
        row(f"a wake across processes, {what}: beyond a bare futex", "≤ 2 µs", None if beyond is None else beyond / 1e3, "µs", most(2))
        if bare is not None:
            notes.append(f"Wakes, {what}: the bare futex takes {bare / 1e3:.1f} µs.")


clockwork(json.loads((folder / "delay.json").read_text()) if (folder / "delay.json").exists() else {"cpus": 0})


def recorded(name):
    """The output of a benchmark that needs root and BPF; empty, and said so, where it did not run."""
    path = folder / f"{name}.txt"
    text = path.read_text() if path.exists() else "SKIPPED: not run"
    if text.startswith("SKIPPED"):
        if parts:
            return ""
        notes.append(f"Recording ({name}) was not measured: {text.strip()}.")
        return ""
    return text


def capture_rows(capture):
    for what, title, limit in (("cached 4 KiB pread", "cached 4 KiB pread", 400), ("open + read + close", "open, read, close", 1300)):
        part = capture.split(what + ":")[1] if what + ":" in capture else ""
        part = re.split(r"\n(?!  )", part)[0]
        row(f"recording, {title}", f"≤ +{limit:,} ns", number(part, r"captured: ([+-]\d+) ns"), "ns", most(limit))
        row(f"… {title}, untraced", "", number(part, r"untraced ([\d.]+) ns"), "ns")
        if limit == 400:
            floor = number(part, r"an empty program: ([+-]\d+) ns")
            row("… a process that is not recorded", "≤ +150 ns", number(part, r"not recorded: ([+-]\d+) ns"), "ns", most(150))
            if floor is None:
                notes.append("An empty program on the hooks of a recording was not measured: the kernel refused it.")
            else:
                row("… an empty program on the same hooks", "", floor, "ns")
        for tool in ("strace", "perf trace", "bpftrace"):
            if (cost := number(part, tool + r": ([+-]\d+) ns")) is None:
                notes.append(f"recording, {title}, {tool}: not measured.")
            else:
                row(f"… {tool}" if limit == 400 else f"… {tool}, open, read, close", "", cost, "ns")
    row("recording, one thread flat out: lost of 10 M calls", "0", number(capture, r"flat out.*?lost (\d+)"), "", most(0))


def request_rows(text):
    for batch in (1, 16):
        part = re.split(r"\n(?!  )", text.split(f"rate, {batch} at a time")[1])[0] if f"rate, {batch} at a time" in text else ""
        how = "" if batch == 1 else f", {batch} submitted at a time"
        for name, what, limit in (("fio", "fio io_uring", 100), ("loop", "a bare liburing loop", 90)):
            row(f"io_uring, afap, 1 M cached 4 KiB reads at depth 32{how}: of the speed of {what}", f"≥ {limit} %",
                number(part, name + r": [^\n]*?([\d.]+) %"), "%", least(limit))
        row(f"… M requests/s{how}", "", number(part, r"loop: [^\n]*replayed: ([\d.]+)"), "M/s")
    for batch in (1, 16):
        row(f"null engine, io_uring requests per core, {batch} submitted at a time", "≥ 10 M requests/s",
            number(text, rf"null, {batch} at a time: ([\d.]+)"), "M requests/s", least(10))
    for batch in (1, 16):
        part = next((line for line in text.split("\n") if line.startswith(f"recording, {batch} at")), "")
        row(f"recording, io_uring, 1 M cached 4 KiB reads, {batch} submitted at a time", "≤ +400 ns", number(part, r"recorded ([+-]\d+) ns"), "ns", most(400))
        row(f"… {batch} at a time, unrecorded", "", number(part, r"unrecorded (\d+) ns"), "ns")
        asked = number(part, r"of (\d+) requests")
        missing = None if asked is None else sum(asked - number(part, rf"(\d+) {what}") for what in ("submissions", "completions"))
        row(f"… {batch} at a time, requests lost", "0", missing, "", most(0))


def generate_rows(text):
    row("generate, 100 M random reads of four jobs", "≥ 8 M ops/s", number(text, r"generate: .*?([\d.]+) M ops/s"), "M ops/s", least(8))
    row("… its memory", "", number(text, r"generate: .*?(\d+) MiB"), "MiB")
    for model, steps in (("unet3d", {"H100": 323, "A100": 636}), ("resnet50", {"H100": 224, "A100": 435})):
        for accelerator, step in steps.items():
            row(f"generated {model}, {accelerator}, data in memory: MLPerf's AU", "≥ 99 %", number(text, rf"au {model}-{accelerator}: ([\d.]+)"), "%", least(99))
            took = number(text, rf"au {model}-{accelerator}: .*?step ([\d.]+)")
            row(f"… {accelerator}, {model}: its step, off by", "≤ 0.5 %", None if took is None else 100 * (took / step - 1), "%", lambda value: abs(value) <= 0.5)
    row("generated dlrm, 375 us steps, four accelerators, null engine: MLPerf's AU", "≥ 99 %", number(text, r"au dlrm: ([\d.]+)"), "%", least(99))


if generated := recorded("generate"):
    generate_rows(generated)
if requests := recorded("requests"):
    request_rows(requests)
if capture := recorded("capture"):
    capture_rows(capture)
if epoch := recorded("epoch"):
    row("recording, a ResNet epoch: longer by", "≤ 2 %", number(epoch, r"recorded .*?: ([+-][\d.]+) % longer"), "%", most(2))
    row("op log of a ResNet epoch", "≤ 6 B/op", number(epoch, r"op log .*?: ([\d.]+) bytes"), "B/op", most(6))
    row("replay of that epoch, same storage, warm: elapsed differs by", "≤ 3 %", number(epoch, r"the replay .*?: ([+-][\d.]+) %"), "%",
        lambda value: abs(value) <= 3)

cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
cores = sum(1 for line in open("/proc/cpuinfo") if line.startswith("processor"))
data = {"machine": f"{cores} x {cpu}, Linux {platform.release()}", "date": datetime.date.today().isoformat(), "command": "tests/bench/run.sh",
        "rows": rows, "notes": notes}
if parts:
    old = docs_tables.load("benchmarks")
    data = docs_tables.keep_before(data, old)
    rows = data["rows"]
    # Measured rows take the place of those before; new ones follow the one that they follow here.
    merged, at = list(old["rows"]), 0
    for one in rows:
        if one["value"] is None:
            continue
        same = next((i for i, row in enumerate(merged) if row["what"] == one["what"]), None)
        if same is None:
            merged.insert(at, one)
            at += 1
        else:
            merged[same] = one
            at = same + 1
    # Of those before, a part may have been measured later than the rest.
    said = f"Only {' and '.join(parts)} were measured then; the other rows are of "
    others = next((note.split(" rows are of ", 1)[1].rstrip(".") for note in old["notes"] if note.startswith("Only ")), "")
    if not any(note.startswith(said) for note in old["notes"]):
        others = old["date"] + ", " + old["machine"] + (f", or of {others}" if others else "")
    data = {**data, "rows": merged, "command": "tests/bench/run.sh " + " ".join(parts),
            "notes": [note for note in old["notes"] if not note.startswith("Only ")] + notes
            + [f"{said}{others}."]}
    rows = merged
else:
    data = docs_tables.keep_before(data, docs_tables.load("benchmarks"))
(folder / "benchmarks.json").write_text(json.dumps(data, indent=1, ensure_ascii=False))
print("\n".join(docs_tables.benchmark_lines(data)))
incomplete = any(row["value"] is None for row in rows)
if "--write-docs" in sys.argv[2:] and not incomplete:
    docs_tables.save("benchmarks", data)
    docs_tables.write()
sys.exit(1 if incomplete else 0)

# SPDX-License-Identifier: MIT
"""Owns what is made of the rows: medians, errors, the real job's own spread, stated intervals and whether they hold."""

import datetime
import shlex
import statistics
import sys

import experiments

RELATIVE_ROOM, TIMES_SPREAD = 0.03, 2  # an interval is at most twice as wide as the real job's own range, plus 3 %


def median(rows, key):
    values = [row.get(key) for row in rows]
    return None if None in values else statistics.median(values)


def error_of(found, key):
    """Percent of the span, or points of AU; None where one of them is unknown."""
    unit = "s" if found["judge"] == "span" else "au"
    real, ours = found[f"real_{unit}"], found[f"{key}_{unit}"]
    if real is None or ours is None:
        return None
    return 100 * (ours / real - 1) if unit == "s" else 100 * (ours - real)


def stated(found, rows, reals):
    """The interval that the replays stated, median of each bound; whether the real job's median lies in it, and whether it is as
    narrow as asked for. Nothing where none was stated."""
    unit = "s" if found["judge"] == "span" else "au"
    bounds = [row[f"interval_{unit}"] for row in rows if row.get(f"interval_{unit}")]
    truth = [row[f"real_{unit}"] for row in reals if row[f"real_{unit}"] is not None]
    if len(bounds) < len(rows) or not truth:
        return {}
    least, most = (statistics.median(bound[end] for bound in bounds) for end in (0, 1))
    middle = statistics.median(truth)
    room = TIMES_SPREAD * (max(truth) - min(truth)) + RELATIVE_ROOM * (middle if unit == "s" else 1)
    return {"interval": [least, most], "inside": least <= middle <= most, "interval_allowed": room,
            "narrow": None if found["event_loop"] else most - least <= room}


IN_FLIGHT_BAR = 2.0  # percent of depth


def in_flight(rows):
    """Requests in flight in the mean over time, the job's while it was recorded there beside the replay's; how far the distributions
    are apart. Nothing for jobs that have none."""
    keys = ("in_flight_there", "in_flight_replayed", "in_flight_replayed_off")
    values = [median(rows, key) for key in keys]
    if None in values:
        return {}
    return {"in_flight": dict(zip(("there", "replayed", "off"), values)) | {"met": values[2] <= IN_FLIGHT_BAR}}


def summarise(cell, rows, reals):
    """`reals`: a row of each real run of that job at that place, each run once. `itself_percent`: the real runs beside this cell
    against all of them, the error that a replay would show which is the job itself; None where they served other cells."""
    found = {"group": cell.group, "cell": cell.name, "judge": cell.judge, "part": cell.part, "bar": cell.bar, "rounds": len(rows),
             "job": cell.recorded.name, "event_loop": cell.recorded.event_loop, "late": cell.recorded.late}
    for key in ("recorded", "real", "replayed", "predicted"):
        for unit in ("s", "au"):
            found[f"{key}_{unit}"] = median(rows, f"{key}_{unit}")
        times = [row[f"{key}_s"] for row in rows if row.get(f"{key}_s") is not None]
        found[f"{key}_spread"] = [min(times), max(times)] if times else None
    times = [row["real_s"] for row in reals]
    found["itself_percent"] = None if cell.shared else 100 * (found["real_s"] / statistics.median(times) - 1)
    found["real_s"], found["real_spread"], found["real_runs"] = statistics.median(times), [min(times), max(times)], len(times)
    found["own_spread_percent"] = 100 * (max(times) - min(times)) / found["real_s"]
    found["error"], found["predicted_error"] = error_of(found, "replayed"), error_of(found, "predicted")
    found["met"] = found["error"] is not None and abs(found["error"]) <= cell.bar
    found["predicted_met"] = None if found["predicted_error"] is None else abs(found["predicted_error"]) <= experiments.PREDICTION_BAR
    return found | stated(found, rows, reals) | in_flight(rows)


def summaries(cells, rounds, count):
    """Of all cells that have a row."""
    rows = {cell: mine for cell in cells if (mine := rounds.of(cell, count))}
    reals = {}
    for cell, mine in rows.items():
        for row in mine:
            reals.setdefault((cell.real, cell.target), {})[row["real_id"]] = row
    return [summarise(cell, mine, list(reals[cell.real, cell.target].values())) for cell, mine in rows.items()], rows


def figure(cell, key):
    """What docs/data/accuracy.json keeps of one side: percent of AU, or seconds."""
    if cell["judge"] == "au":
        return None if cell[f"{key}_au"] is None else {"median": round(100 * cell[f"{key}_au"], 1)}
    if cell[f"{key}_s"] is None:
        return None
    least, most = cell[f"{key}_spread"]
    return {"median": round(cell[f"{key}_s"], 3), "least": round(least, 3), "most": round(most, 3)}


def rounded(value, digits=1):
    return None if value is None else round(value, digits)


def documented_cell(cell):
    kept = {key: cell[key] for key in ("group", "cell", "judge", "part", "bar", "rounds")}
    kept |= {key: True for key in ("event_loop", "late") if cell[key]}
    kept |= {key: figure(cell, key) for key in ("recorded", "real", "replayed")}
    kept |= {"real_runs": cell["real_runs"], "own_spread": rounded(cell["own_spread_percent"]), "error": rounded(cell["error"]), "met": cell["met"]}
    if cell["predicted_error"] is not None:
        kept |= {"predicted": figure(cell, "predicted"), "predicted_error": rounded(cell["predicted_error"]), "predicted_met": cell["predicted_met"]}
    if "in_flight" in cell:
        kept |= {"in_flight": {key: rounded(value, 2) if key != "met" else value for key, value in cell["in_flight"].items()}}
    if "interval" in cell:
        scale, digits = (100, 1) if cell["judge"] == "au" else (1, 3)
        kept |= {"interval": [round(scale * bound, digits) for bound in cell["interval"]], "inside": cell["inside"], "narrow": cell["narrow"]}
    return kept


def documented(found, facts, rows, arguments):
    """A run as docs/data/accuracy.json keeps it; scripts/docs_tables.py renders it."""
    shares = [share for row in rows for share in row["stolen"]]
    words = [word for word in sys.argv[1:] if word not in ("--write-docs", "--fresh", "--force")]
    own_places = ("--out", "--dir", "--bin", "--lock", "--keep")
    words = [word for before, word in zip(["", *words], words) if word not in own_places and before not in own_places]
    run = {"date": datetime.date.today().isoformat(),
           "machine": f"{facts['cpus']} x {facts['cpu']}, {facts['memory_gib']} GiB, Linux {facts['kernel'].split('-')[0]}",
           "command": shlex.join(["tests/bench/accuracy/run.sh", *words]),
           "steal_percent": {"median": round(100 * statistics.median(shares), 1), "most": round(100 * max(shares), 1), "repeat_above": arguments.calm}}
    if own := sorted(abs(cell["itself_percent"]) for cell in found if cell["itself_percent"] is not None):
        theirs = [abs(cell["error"]) for cell in found if cell["itself_percent"] is not None]
        run["itself"] = {"cells": len(own), "bar": 5.0, "mean": round(statistics.mean(own), 1), "greatest": round(own[-1], 1),
                         "within": sum(error <= 5 for error in own), "replays_mean": round(statistics.mean(theirs), 1)}
    if works := sorted(work for row in rows for work in row.get("work_s", ())):  # rows of before have none
        middle = statistics.median(works)
        run["notes"] = [f"A fixed piece of work beside each run took {works[0] / middle:.2f} to {works[-1] / middle:.2f} of its median, in nine of ten runs "
                        f"up to {works[len(works) * 9 // 10] / middle:.2f}: how much the machine's own speed varied."]
    run["cells"] = [documented_cell(cell) for cell in found]
    return run

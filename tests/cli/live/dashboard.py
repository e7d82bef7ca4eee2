#!/usr/bin/env python3
# usage: dashboard.py DASHBOARD SCHEMA METRICS
# Checks a Grafana dashboard: against the schema, and what no schema can say: ids and places of panels, and that its
# queries ask for metrics and labels that METRICS (`reprise ops --metrics --json`) has, counters by their rates.
# SPDX-License-Identifier: MIT
import json
import re
import sys

import jsonschema

# What Prometheus or PromQL itself brings, and dashboard variables.
KNOWN_LABELS = {"instance", "le"}
COUNTED = re.compile(r"\b(reprise_[a-z_]+)\{([^}]*)\}(\[)?")


def explain(error, at=()):
    """Of alternatives only the one that was meant: that whose type fits, else the nearest."""
    where = (*at, *error.relative_path)
    if not error.context:
        return [f"{'/'.join(map(str, where))}: {error.message}"]
    ways = {}
    for one in error.context:
        ways.setdefault(one.schema_path[0], []).append(one)
    meant = min(ways.values(), key=lambda way: (any(list(one.relative_path)[-1:] == ["type"] for one in way), len(way)))
    return [line for one in meant for line in explain(one, where)]


def problems_of_place(panels):
    seen, taken = set(), {}
    for panel in panels:
        if panel["id"] in seen:
            yield f"two panels have id {panel['id']}"
        seen.add(panel["id"])
        at = panel["gridPos"]
        if at["x"] + at["w"] > 24:
            yield f"'{panel['title']}' is wider than the page"
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                if (x, y) in taken:
                    yield f"'{panel['title']}' covers '{taken[x, y]}'"
                taken[x, y] = panel["title"]


def base_of(name, metrics):
    for suffix in ("_bucket", "_sum", "_count"):
        base = name.removesuffix(suffix)
        if name.endswith(suffix) and metrics.get(base, {}).get("type") == "histogram":
            return base
    return name


def problems_of_query(where, expr, legend, metrics):
    found = COUNTED.findall(expr)
    if not found:
        yield f"{where}: no metric with a selector in {expr}"
    labels = set(KNOWN_LABELS)
    for name, selector, ranged in found:
        row = metrics.get(base_of(name, metrics))
        if row is None:
            yield f"{where}: there is no metric {name}"
            continue
        labels |= set(filter(None, row["labels"].split(",")))
        if 'instance=~"$instance"' not in selector:
            yield f"{where}: {name} of all instances"
        if row["type"] == "counter" and not ranged and "mismatches" not in name and "lost" not in name:
            yield f"{where}: {name} is a counter, and no rate of it is taken"
        if row["type"] == "gauge" and ranged:
            yield f"{where}: {name} is a gauge, and a rate of it is taken"
    for by in re.findall(r"by \(([^)]*)\)", expr):
        for label in by.split(","):
            if label.strip() not in labels:
                yield f"{where}: no metric has the label {label.strip()}"
    for label in re.findall(r"\{\{(\w+)\}\}", legend):
        if label not in labels:
            yield f"{where}: the legend names {label}, a label of no metric"


def main():
    dashboard, schema, metrics = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:4])
    metrics = {row["metric"]: row for row in metrics["metrics"]}
    jsonschema.Draft7Validator.check_schema(schema)
    problems = [line for error in jsonschema.Draft7Validator(schema).iter_errors(dashboard) for line in explain(error)]
    asked = set()
    if not problems:
        problems += problems_of_place(dashboard["panels"])
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                where = f"'{panel['title']}' {target['refId']}"
                problems += problems_of_query(where, target["expr"], target.get("legendFormat", ""), metrics)
                asked |= {base_of(name, metrics) for name, _, _ in COUNTED.findall(target["expr"])}
    for problem in problems:
        print(problem)
    print(f"{len(dashboard['panels'])} panels, {len(asked)} of {len(metrics)} metrics, {len(problems)} problems")
    sys.exit(1 if problems else 0)


main()

# SPDX-License-Identifier: MIT
"""What became of the faults: totals, survivors, and the table of docs/testing.md."""
import collections
from pathlib import Path

import plan
from build import ROOT

PAGE = ROOT / "docs/testing.md"
BEGIN, END = "<!-- tests/mutate.sh --table: begin -->", "<!-- tests/mutate.sh --table: end -->"


class Totals:
    def __init__(self, results):
        equivalent = plan.read_equivalent()
        self.files = collections.defaultdict(collections.Counter)
        self.rules = collections.defaultdict(collections.Counter)
        self.survivors, self.equivalents = [], []
        for result in results:
            word = result["outcome"]
            if word not in ("found", "survived"):
                continue
            if word == "survived" and key_of(result) in equivalent:
                word = "equivalent"
                self.equivalents.append(dict(result, reason=equivalent[key_of(result)]))
            elif word == "survived":
                self.survivors.append(result)
            self.files[result["file"]][word] += 1
            self.rules[result["rule"]][word] += 1
        self.all = sum(self.files.values(), collections.Counter())

    @property
    def share(self):
        return share(self.all)


def key_of(result):
    return plan.key(result["file"], result["rule"], result["before"], result["after"])


def share(counts):
    """Of the faults that change anything, how many were found."""
    real = counts["found"] + counts["survived"]
    return counts["found"] / real if real else 1.0


def text(totals):
    lines = []
    for one in sorted(totals.survivors, key=lambda r: (r["file"], r["line"])):
        lines += [f"{one['file']}:{one['line']}: {one['rule']}", f"    - {one['before']}", f"    + {one['after']}"]
    counts = totals.all
    lines.append(f"{counts['found'] + counts['survived'] + counts['equivalent']} faults: {counts['found']} found, "
                 f"{counts['survived']} survived, {counts['equivalent']} equivalent; {totals.share:.1%} found")
    return "\n".join(lines)


def as_json(totals, seed):
    return {"seed": seed, "share_found": totals.share, **{w: totals.all[w] for w in ("found", "survived", "equivalent")},
            "files": {name: dict(counts) for name, counts in sorted(totals.files.items())},
            "rules": {name: dict(counts) for name, counts in sorted(totals.rules.items())},
            "survivors": totals.survivors, "equivalents": totals.equivalents}


def row(name, counts):
    cells = [counts[word] for word in ("found", "survived", "equivalent")]
    return f"| {name} | {sum(cells)} | {cells[0]} | {cells[1]} | {cells[2]} | {share(counts):.0%} |"


def table(totals, seed):
    """By file and by rule, in Markdown."""
    def head(what):
        return [f"| {what} | faults | found | survived | equivalent | share found |", "|---|---:|---:|---:|---:|---:|"]
    files = [row(f"`{name}`", totals.files[name]) for name in sorted(totals.files)]
    rules = [row(name, totals.rules[name]) for name in sorted(totals.rules)]
    return "\n".join([f"Seed {seed}.", "", *head("file"), *files, row("**all**", totals.all), "", *head("rule"), *rules])


def write_table(totals, seed):
    page = PAGE.read_text() if PAGE.exists() else f"# Testing\n\n{BEGIN}\n{END}\n"
    if BEGIN not in page or END not in page:
        raise SystemExit(f"mutate: {PAGE}: the lines `{BEGIN}` and `{END}` are missing")
    before, rest = page.split(BEGIN, 1)
    PAGE.write_text(f"{before}{BEGIN}\n{table(totals, seed)}\n{END}{rest.split(END, 1)[1]}")
    return Path(PAGE)

# SPDX-License-Identifier: MIT
"""Owns what was measured so far: a row for each cell and round in runs.jsonl, complete at every moment, and the conditions under
which rows may stand beside each other."""

import hashlib
import json
import os
import subprocess
import time

import jobs


def conditions(facts, arguments, reprise):
    """Rows under other ones are not comparable. The binary counts with the commit: it may have been built with changes."""
    dirty = subprocess.run(["git", "-C", jobs.TOP, "status", "--porcelain", "--untracked-files=no"], stdout=subprocess.PIPE, text=True,
                           stderr=subprocess.DEVNULL).stdout.strip()
    return {"commit": facts["commit"] + ("+" if dirty else ""), "program": hashlib.sha256(reprise.read_bytes()).hexdigest()[:12],
            "machine": f"{facts['cpus']} x {facts['cpu']}, {facts['memory_gib']} GiB, Linux {facts['kernel']}",
            "data": "quick" if arguments.quick else "full", "devices": "memory" if arguments.memory else "images",
            "priority": arguments.nice, "backed": arguments.backed}


class Changed(Exception):
    """What was measured before was measured under other conditions."""


class Rounds:
    """Rows by cell and round. A row is on the disk before the next cell begins; one whose end is missing, since the program was
    killed while writing it, is measured again, and so is one that failed."""

    def __init__(self, folder, now, fresh=False, force=False):
        self.path, self.now = folder / "runs.jsonl", now
        self.rows, self.failed = {}, {}
        if fresh:
            for left in [self.path, *folder.glob("model-*.json")]:
                left.unlink(missing_ok=True)
        self._read(force)
        self.file = open(self.path, "a", encoding="utf-8")

    def _read(self, force):
        whole, then = b"", None
        for line in self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if not line.endswith(b"\n"):
                continue
            whole += line
            then = row.get("conditions", {})
            if then != self.now and not force:
                raise Changed("; ".join(f"{name}: {then.get(name)} then, {self.now[name]} now" for name in self.now if then.get(name) != self.now[name]))
            if not row.get("failed"):
                self.rows[row["group"], row["cell"], row["round"]] = row
        if self.path.exists():
            new = self.path.with_suffix(".new")
            new.write_bytes(whole)
            new.rename(self.path)

    def has(self, cell, number):
        return (cell.group, cell.name, number) in self.rows

    def missing(self, cells, count):
        return [(cell, number) for number in range(count) for cell in cells if not self.has(cell, number)]

    def add(self, cell, number, row):
        row = {"group": cell.group, "cell": cell.name, "round": number, "conditions": self.now} | row
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())
        if row.get("failed"):
            self.failed[cell.group, cell.name] = row["failed"]
        else:
            self.failed.pop((cell.group, cell.name), None)
            self.rows[cell.group, cell.name, number] = row

    def of(self, cell, count):
        return [self.rows[cell.group, cell.name, number] for number in range(count) if self.has(cell, number)]


class Left:
    """Says how long the rest will take: each cell as long as it took before, one not yet measured as the mean of the others."""

    def __init__(self, rounds, missing):
        self.took = {}
        for (group, name, _), row in rounds.rows.items():
            self.took.setdefault((group, name), []).append(row.get("took_s", 0))
        self.missing = list(missing)
        self.begin = time.monotonic()

    def done(self, cell, number, seconds):
        self.missing.remove((cell, number))
        self.took.setdefault((cell.group, cell.name), []).append(seconds)

    def seconds(self):
        mean = {key: sum(values) / len(values) for key, values in self.took.items()}
        if not mean:
            return None
        usual = sum(mean.values()) / len(mean)
        return sum(mean.get((cell.group, cell.name), usual) for cell, _ in self.missing)

    def text(self):
        left = self.seconds()
        if left is None:
            return "?"
        return f"{left / 3600:.1f} h" if left >= 5400 else f"{left / 60:.0f} min" if left >= 90 else f"{left:.0f} s"

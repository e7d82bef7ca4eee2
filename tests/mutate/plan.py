# SPDX-License-Identifier: MIT
"""Which faults are planted: the list of files, an even choice among their faults, and those known to be equivalent."""
import collections
import dataclasses
import fnmatch
import math
import random
from pathlib import Path

import rules
from build import HERE, ROOT

FILES = HERE / "files.txt"
EQUIVALENT = HERE / "equivalent.txt"


@dataclasses.dataclass(frozen=True)
class Room:
    """How faults of one file are looked for."""
    targets: tuple   # test programs
    first: tuple     # the test sources most likely to see it
    programs: tuple  # (script of tests/programs, program), where the test programs see nothing


def round_trips(word):
    """SCRIPT:PROGRAM; `*` for all programs."""
    script, program = word.split(":")
    if program != "*":
        return [(script, program)]
    return [(script, path.stem) for path in sorted((ROOT / "tests/programs").glob("*.c"))]


def read_files(only=None):
    """{path: Room} of files.txt; the first row that fits a file counts."""
    rooms = {}
    for number, line in enumerate(FILES.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 4:
            raise SystemExit(f"{FILES}:{number}: four columns expected: glob, test programs, first tests, round trips")
        lists = [tuple(word.split(",")) if word != "-" else () for word in words[1:]]
        programs = tuple(trip for word in lists[2] for trip in round_trips(word))
        found = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(words[0]))
        if not found:
            raise SystemExit(f"{FILES}:{number}: no file is named {words[0]}")
        for name in found:
            rooms.setdefault(name, Room(lists[0], lists[1], programs))
    return {name: room for name, room in rooms.items() if only is None or fnmatch.fnmatch(name, only)}


def shares(sizes, count):
    """`count` over the files by the root of their sizes, none more than it has: by largest remainder."""
    weights = {name: math.sqrt(size) for name, size in sizes.items() if size}
    total = sum(weights.values()) or 1
    count = min(count, sum(sizes.values()))
    exact = {name: count * weight / total for name, weight in weights.items()}
    out = {name: min(int(value), sizes[name]) for name, value in exact.items()}
    order = sorted(exact, key=lambda name: (int(exact[name]) - exact[name], name))
    while sum(out.values()) < count:
        for name in order:
            if sum(out.values()) < count and out[name] < sizes[name]:
                out[name] += 1
    return out


def choose(faults, count, draw, used):
    """`count` lists of faults, one for each part of the file with as many faults, the rule used least first; the rest
    of a list stands in where a fault does not compile."""
    parts = []
    for k in range(count):
        part = faults[len(faults) * k // count:len(faults) * (k + 1) // count]
        draw.shuffle(part)
        by_rule = collections.defaultdict(list)
        for fault in part:
            by_rule[fault.rule].append(fault)
        order = sorted(by_rule, key=lambda rule: used[rule])
        used[order[0]] += 1
        turns = max(map(len, by_rule.values()))
        parts.append([by_rule[rule][turn] for turn in range(turns) for rule in order if turn < len(by_rule[rule])])
    return parts


def sample(rooms, count, seed):
    """[(path, [fault and those that stand in for it])], in an order that does not depend on paths' folders."""
    found = {name: rules.faults((ROOT / name).read_text()) for name in rooms}
    out, used = [], collections.Counter()
    quota = shares({name: len(faults) for name, faults in found.items()}, count)
    for name in sorted(quota, key=lambda name: Path(name).name):
        draw = random.Random(f"{seed}/{Path(name).name}")
        out += [(name, part) for part in choose(found[name], quota[name], draw, used)]
    random.Random(seed).shuffle(out)  # an early stop is even, too
    return out


def key(name, rule, before, after):
    """The same wherever the file or the line moves to."""
    return Path(name).name, rule, " ".join(before.split()), " ".join(after.split())


def read_equivalent(path=None):
    """{key: reason}. A stanza is `FILE RULE`, `- LINE`, `+ LINE` and a reason, until an empty line."""
    path, out = path or EQUIVALENT, {}
    for stanza in path.read_text().split("\n\n") if path.exists() else []:
        lines = [line for line in stanza.splitlines() if line and not line.startswith("#")]
        if not lines:
            continue
        head = lines[0].split()
        if len(lines) < 4 or len(head) != 2 or lines[1][:2] != "- " or lines[2][:1] != "+":
            raise SystemExit(f"{path}: a stanza is FILE RULE, - LINE, + LINE, reason; not:\n{stanza}")
        reason = " ".join(line.strip() for line in lines[3:])
        out[key(head[0], head[1], lines[1][2:], lines[2][2:])] = reason
    return out

# SPDX-License-Identifier: MIT
"""Owns what a log tells of asynchronous requests: when the first went in and the last was done, how many were in flight for how long,
and how far two such distributions are apart."""

import dataclasses
import re

WANTED = " uring_submit \\| aio_submit \\| uring_complete \\| aio_complete "  # for grep
_LINE = re.compile(r"^begin=(\d+) duration=(\d+) task=\d+ op=\d+ (?:uring|aio)_(submit|complete) .*?\brequest=(\d+)", re.M)


@dataclasses.dataclass
class InFlight:
    seconds: float  # from the first submission to the last completion
    requests: int
    shares: dict  # number in flight -> share of that time

    @property
    def mean(self):
        return sum(number * share for number, share in self.shares.items())

    @property
    def most(self):
        return max(self.shares)


def of_text(text):
    """Of the lines that `reprise dump` prints of the log's requests; None where it has none that ended. A request is in flight from
    the end of its submission to the end of its completion."""
    began, spans = {}, []
    ended = [(found[4], int(found[1]) + int(found[2])) for found in _LINE.finditer(text) if found[3] == "complete"]
    for found in _LINE.finditer(text):
        if found[3] == "submit":
            began[found[4]] = int(found[1]) + int(found[2])
    spans = [(began[request], max(end, began[request])) for request, end in ended if request in began]
    if not spans:
        return None
    begin, end = min(span[0] for span in spans), max(span[1] for span in spans)
    return InFlight((end - begin) * 1e-9, len(spans), _shares(spans, begin, end))


def of_verdict(side, log):
    """The same, of the replay's own JSON, which knows when a request was done also where its task got to the result later; `log`: what
    the run's log tells of it."""
    if log is None or not side:
        return log
    busy, shares = side["in_flight"]["busy_s"] / log.seconds if log.seconds else 1, {}
    for row in side["in_flight"]["time"]:
        middle = round((row["from"] + row["to"]) / 2)
        shares[middle] = shares.get(middle, 0) + row["share"] * busy
    return InFlight(log.seconds, log.requests, shares | {0: max(0.0, 1 - sum(shares.values()))})


def _shares(spans, begin, end):
    times, number, last = {}, 0, begin
    for at, change in sorted([(span[0], 1) for span in spans] + [(span[1], -1) for span in spans], key=lambda one: (one[0], -one[1])):
        if at > last:
            times[number] = times.get(number, 0) + at - last
            last = at
        number += change
    return {key: value / (end - begin) for key, value in sorted(times.items())} if end > begin else {len(spans): 1.0}


def apart(one, other):
    """Percent of the depth that `one` reached: how far requests would have to be moved, in the mean over time, to make one distribution
    of the other (their Wasserstein distance)."""
    total = below_one = below_other = 0.0
    for number in range(max(one.most, other.most)):
        below_one += one.shares.get(number, 0)
        below_other += other.shares.get(number, 0)
        total += abs(below_one - below_other)
    return 100 * total / one.most

#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The harness itself, without a measurement: what is kept and resumed, what is made of rows, what the page and the chart show."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

import accuracy
import experiments
import inflight
import jobs
import measure
import rounds
import storage
import summary

sys.path.insert(0, str(jobs.TOP / "scripts"))
import docs_tables  # noqa: E402

NOW = {"commit": "a", "program": "b", "machine": "c", "data": "full"}


def named(name, quick=False):
    return next(cell for cell in experiments.cells(jobs.jobs(quick)) if f"{cell.group}/{cell.name}" == name)


def row(real, replayed, number, **more):
    return {"recorded_s": 1.0, "real_s": real, "replayed_s": replayed, "predicted_s": 2.0, "recorded_au": None, "real_au": None, "replayed_au": None,
            "predicted_au": None, "real_id": str(number), "stolen": [0, 0, 0], "work_s": [1, 1, 1]} | more


class Resuming(unittest.TestCase):
    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = pathlib.Path(place.name)
        self.cells = [named("cold/pipeline"), named("slower/asyncio, xfs-25")]

    def opened(self, now=NOW, **more):
        found = rounds.Rounds(self.folder, now, **more)
        self.addCleanup(found.file.close)
        return found

    def test_goes_on_with_what_is_missing(self):
        self.opened().add(self.cells[0], 0, row(1, 1, 0))
        self.opened().add(self.cells[1], 1, row(1, 1, 1))
        self.assertEqual(self.opened().missing(self.cells, 2), [(self.cells[1], 0), (self.cells[0], 1)])
        self.assertEqual(len(self.opened().of(self.cells[1], 2)), 1)

    def test_a_row_cut_off_is_measured_again(self):
        first = self.opened()
        first.add(self.cells[0], 0, row(1, 1, 0))
        first.add(self.cells[1], 0, row(1, 1, 0))
        whole = first.path.read_bytes()
        for cut in (1, 40):  # without its line's end it is complete JSON, and still not known to be
            first.path.write_bytes(whole[:-cut])
            again = self.opened()
            self.assertEqual(again.missing(self.cells, 1), [(self.cells[1], 0)])
            again.add(self.cells[1], 0, row(1, 1, 0))
            self.assertEqual(self.opened().missing(self.cells, 1), [])

    def test_a_failed_cell_is_tried_again(self):
        first = self.opened()
        first.add(self.cells[0], 0, {"failed": "no"})
        self.assertEqual(list(first.failed.values()), ["no"])
        again = self.opened()
        self.assertEqual(again.missing(self.cells[:1], 1), [(self.cells[0], 0)])
        again.add(self.cells[0], 0, row(1, 1, 0))
        self.assertEqual((again.failed, again.missing(self.cells[:1], 1)), ({}, []))

    def test_other_conditions_are_refused_unless_forced(self):
        self.opened().add(self.cells[0], 0, row(1, 1, 0))
        for name in NOW:
            with self.assertRaisesRegex(rounds.Changed, f"{name}: {NOW[name]} then, z now"):
                self.opened(NOW | {name: "z"})
        self.assertEqual(self.opened(NOW | {"commit": "z"}, force=True).missing(self.cells[:1], 1), [])
        self.assertEqual(self.opened(NOW | {"commit": "z"}, fresh=True).missing(self.cells[:1], 1), [(self.cells[0], 0)])

    def test_time_left_is_each_cells_own(self):
        found = self.opened()
        found.add(self.cells[0], 0, row(1, 1, 0, took_s=10))
        found.add(self.cells[1], 0, row(1, 1, 0, took_s=30))
        left = rounds.Left(found, found.missing(self.cells, 2))
        self.assertEqual((left.seconds(), left.text()), (40, "40 s"))
        left.done(self.cells[0], 1, 10)
        self.assertEqual(left.seconds(), 30)
        left = rounds.Left(found, [(named("cold/ddp"), 0)])
        self.assertEqual(left.seconds(), 20)

    def test_what_a_killed_run_left_is_removed_and_what_runs_is_not(self):
        with storage.working_folder(self.folder) as mine:
            (self.folder / f"{storage.PREFIX}dead").mkdir()
            (self.folder / f"{storage.PREFIX}dead" / storage.LOCK).touch()
            storage.sweep(self.folder)
            self.assertEqual(list(self.folder.glob(storage.PREFIX + "*")), [mine])


class Summary(unittest.TestCase):
    def summarise(self, name, rows):
        return summary.summarise(named(name), rows, rows)

    def test_error_spread_prediction(self):
        found = self.summarise("slower/pipeline, xfs-25", [row(real, 4.2, real) for real in (3.9, 4.0, 4.1, 4.0, 4.0)])
        self.assertAlmostEqual(found["error"], 5.0)
        self.assertAlmostEqual(found["own_spread_percent"], 5.0)
        self.assertAlmostEqual(found["predicted_error"], -50.0)
        self.assertEqual((found["part"], found["predicted_met"], found["real_runs"]), ("fit", False, 5))
        self.assertNotIn("interval", found)

    def test_no_prediction_is_no_error(self):
        found = self.summarise("cold/tf-data", [row(1, 1, 0, predicted_s=None)])
        self.assertEqual((found["predicted_error"], found["part"]), (None, "judge"))
        self.assertNotIn("predicted", summary.documented_cell(found))

    def test_interval_holds_the_median_and_is_narrow(self):
        for bounds, inside, narrow in (([3.9, 4.1], True, True), ([4.01, 4.2], False, True), ([3.5, 4.5], True, False)):
            found = self.summarise("slower/pipeline, xfs-25", [row(real, 4, real, interval_s=bounds) for real in (3.95, 4.0, 4.05)])
            self.assertEqual((found["inside"], found["narrow"]), (inside, narrow))  # 2 x 0.1 + 0.12 wide at most
        found = self.summarise("slower/asyncio, xfs-25", [row(4, 4, 0, interval_s=[1, 9])])
        self.assertEqual((found["inside"], found["narrow"], found["event_loop"]), (True, None, True))

    def test_interval_of_the_span(self):
        run = measure.Run(4.0, more={"elapsed_s": 6.0, "elapsed_interval_s": [5.5, 7.0]})
        self.assertEqual(measure.interval_of(run), [3.5, 5.0])
        self.assertIsNone(measure.interval_of(measure.Run(4.0, more={"elapsed_s": 6.0, "elapsed_interval_s": None})))

    def test_a_real_run_counts_once(self):
        cells = [named("slower/pipeline, xfs-25"), named("faster/pipeline, xfs-25 to xfs"), named("cold/pipeline")]
        kept = types.SimpleNamespace(of=lambda cell, count: [row(1.0, 1.0, 7)] if cell.target == ("xfs", "cold") else [])
        found, _ = summary.summaries(cells, kept, 1)
        self.assertEqual([(cell["cell"], cell["real_runs"]) for cell in found], [("pipeline, xfs-25 to xfs", 1), ("pipeline", 1)])


def dumped(*requests):
    """Lines of a dump: (submitted, done) of each request, the second None where it never was."""
    lines = ["begin=5 duration=3 task=1 op=1 uring_enter result=1 handle=1 fd=6 size=1 arg=0"]
    for number, (begin, end) in enumerate(requests, 1):
        lines.append(f"begin={begin} duration=0 task=1 op=1 uring_submit result=0 handle=8 fd=7 file=0 offset=0 size=4096 request={number} list=[] path=x")
        if end is not None:
            lines.append(f"begin={end - 2} duration=2 task=1 op=1 uring_complete result=4096 size=4096 request={number}")
    return "\n".join(lines) + "\n"


class InFlight(unittest.TestCase):
    def test_shares_of_time(self):
        found = inflight.of_text(dumped((100, 200), (150, 250), (300, 400), (390, None)))
        self.assertEqual((round(found.seconds * 1e9), found.requests, found.most), (300, 3, 2))
        self.assertEqual({number: round(300 * share) for number, share in found.shares.items()}, {0: 50, 1: 200, 2: 50})
        self.assertAlmostEqual(found.mean, 1.0)

    def test_one_that_follows_at_once_does_not_add(self):
        self.assertEqual(inflight.of_text(dumped((100, 200), (200, 300))).shares, {1: 1.0})

    def test_none(self):
        self.assertIsNone(inflight.of_text(dumped((100, None))))

    def test_apart(self):
        four, one = (inflight.of_text(dumped(*spans)) for spans in ([(0, 100)] * 4, [(0, 100)]))
        self.assertAlmostEqual(inflight.apart(four, four), 0)
        self.assertAlmostEqual(inflight.apart(four, one), 75)  # three of four
        half = inflight.of_text(dumped(*[(0, 100)] * 4, *[(100, 200)] * 2))
        self.assertAlmostEqual(inflight.apart(four, half), 25)

    def test_summary(self):
        rows = [row(4.0, 4.1, number, in_flight_there=8.0, in_flight_replayed=7.9, in_flight_replayed_off=off) for number, off in enumerate((1.0, 1.5, 9.0))]
        cell = named("requests-known/fixed-uring, xfs-25")
        found = summary.documented_cell(summary.summarise(cell, rows, rows))
        self.assertEqual(found["in_flight"], {"there": 8.0, "replayed": 7.9, "off": 1.5, "met": True})
        self.assertEqual(docs_tables.in_flight(found), "8.0, 7.9; 1.5 %")
        self.assertNotIn("in_flight", summary.documented_cell(summary.summarise(cell, rows + [row(4, 4, 3)], rows)))

    def test_spans_as_printed(self):
        fio = 'fio: note\n{\n  "jobs" : [ { "read" : { "runtime" : 1607 }, "write" : { "runtime" : 0 } } ]\n}\n'
        self.assertEqual(jobs.parse(None, fio), (1.607, 0.0))
        self.assertEqual(jobs.parse(None, "Sending 5 read requests\nRun completed in 0.061 seconds.\n"), (0.061, 0.0))


class Page(unittest.TestCase):
    def run_of(self, bounds):
        cells = [named("slower/pipeline, xfs-25"), named("slower/asyncio, xfs-25"), named("programs/tar, xfs to ext4")]
        rows = [row(4.0, 4.1, 0, interval_s=bounds), row(4.4, 4.1, 1, interval_s=bounds)]
        found = [summary.summarise(cell, rows, rows) for cell in cells]
        return summary.documented(found, {"cpus": 2, "cpu": "x", "memory_gib": 1, "kernel": "6"}, rows, argparse.Namespace(calm=3))

    def test_table(self):
        text = "\n".join(docs_tables.run_lines(self.run_of([4.0, 4.3])))
        self.assertIn("| pipeline, xfs-25 | 1.00 (1.00–1.00) | 4.20 (4.00–4.40) | 4.10 (4.10–4.10) | -2.4 % | 5 % | 9.5 % of 2 | **-52.4 %** | 4.00–4.30 | fit |", text)
        self.assertIn("| asyncio, xfs-25 (event loop) |", text)
        self.assertIn("2 cells of jobs that no interval was fitted to: 2 (100 %) hold the real job's median; 1 of 1 are", text)
        self.assertIn("| stated intervals that hold it | 1 of 1 |", text)
        self.assertIn("4.30–4.50, **missed**", "\n".join(docs_tables.run_lines(self.run_of([4.3, 4.5]))))

    def test_chart(self):
        for bounds, kind in (([4.0, 4.3], "said"), ([4.3, 4.5], "missed")):
            text = docs_tables.chart({"runs": [self.run_of(bounds)]})
            self.assertEqual(text.count(f'<rect class="{kind}" x="'), 3 + (kind == "said"))  # and the legend's
        self.assertLess(docs_tables.near(-50), docs_tables.near(0))
        self.assertEqual(docs_tables.near(-50), docs_tables.near(-15))


class Lock(unittest.TestCase):
    def test_held_inside_and_nowhere_else(self):
        with tempfile.NamedTemporaryFile() as lock:
            def free():
                return subprocess.run(["flock", "--nonblock", lock.name, "true"]).returncode == 0

            with accuracy.alone(pathlib.Path(lock.name)):
                self.assertFalse(free())
            self.assertTrue(free())
            with accuracy.alone(None):
                self.assertTrue(free())


class Matrix(unittest.TestCase):
    def test_cells(self):
        cells = experiments.cells(jobs.jobs(False))
        names = [(cell.group, cell.name) for cell in cells]
        self.assertEqual(len(set(names)), len(names))
        for job in experiments.NEW:
            at = {cell.source[0] for cell in cells if cell.recorded.name == job}, {cell.target[0] for cell in cells if cell.recorded.name == job}
            for places in at:
                self.assertTrue({"xfs", "fuse-1ms", "xfs-iops"} <= places, (job, places))
        for job in jobs.jobs(False).values():
            if job.in_flight:
                ways = {(cell.source[0], cell.target[0]) for cell in cells if cell.recorded == job}
                self.assertEqual(ways, {("xfs", place) if way == "there" else (place, "xfs") for place in job.places for way in job.ways}, job.name)
        self.assertEqual({cell.part for cell in cells}, {"fit", "judge"})
        parts = {}
        for cell in cells:
            parts.setdefault(cell.recorded.name, set()).add(cell.part)
        self.assertTrue(all(len(part) == 1 for part in parts.values()))


if __name__ == "__main__":
    unittest.main()

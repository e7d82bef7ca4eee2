# SPDX-License-Identifier: MIT
"""The tests of the rooms, run where a faulty program can do no harm."""
import os
import re
import resource
import shutil
import sys
import threading
import time

from build import HERE, ROOT

RECORDING = ("test_capture",)  # test programs that record: they need the machine's own process numbers
REAL_TIME = ("test_replay", "test_calibrate", "test_capture")  # a crowded machine may fail them, too
ROUND_TRIP_TARGETS = ("reprise", "program_check_program", "program_check_raw", "program_same_ops")


def limits():
    """A faulty program must not fill the machine."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))


class Tests:
    """The tests of the rooms, how long each takes where nothing is wrong, and a run of them with a fault."""

    def __init__(self, build, rooms, runner, timeout):
        self.build, self.runner, self.timeout = build, runner, timeout
        self.targets = sorted({target for room in rooms.values() for target in room.targets})
        self.trips = sorted({trip for room in rooms.values() for trip in room.programs})
        self.recording = threading.Lock()  # one recorder at a time
        self.took = {}  # (program, test source) or round trip: seconds

    def all_targets(self):
        trips = [*ROUND_TRIP_TARGETS, *(f"c_program_{program}" for _, program in self.trips)] if self.trips else []
        return self.targets + trips

    def measure(self, work):
        """Without a fault; what fails here, three times, tells nothing and is left out."""
        for target in self.targets:
            program = self.build.build / "tests" / target
            for source in self.build.test_sources(target):
                self._measure((target, source), lambda p=program, s=source: self.unit(p, s, work, self.timeout))
        for trip in self.trips:
            self._measure(trip, lambda t=trip: self.round_trip(self.build.build / "reprise", t, work, self.timeout))

    def _measure(self, what, run):
        for _ in range(3):
            began = time.monotonic()
            status, out = run()
            if status in (0, 77):
                break
        if status == 0 and re.search(r"test cases: +0 ", out):
            raise SystemExit(f"mutate: {' '.join(what)}: no test ran")
        if status == 0:
            self.took[what] = time.monotonic() - began
        else:
            reason = "skipped here" if status == 77 else "fails without a fault"
            print(f"mutate: {' '.join(what)} {reason}, left out", file=sys.stderr)
            if status != 77:
                print(out[-1500:], file=sys.stderr)

    def unit(self, program, source, work, timeout):
        flags = ["--keep-pids"] if program.name in RECORDING else []
        return self._sandboxed(flags, [program, f"--source-file=*{source}.cpp", "--abort-after=1", "--no-colors"], work,
                               timeout)

    def round_trip(self, reprise, trip, work, timeout):
        variables = [f"REPRISE={reprise}", f"REPRISE_SOURCE_DIR={self.build.tree}",
                     f"REPRISE_BUILD_DIR={self.build.build}"]
        script = self.build.tree / "tests/programs" / f"{trip[0]}.sh"
        # The recorder sees the numbers of all processes of the machine.
        return self._sandboxed(["--keep-pids"], ["env", *variables, "bash", script, trip[1]], work, timeout)

    def _sandboxed(self, flags, command, work, timeout):
        scratch = work / "tmp"
        scratch.mkdir(parents=True, exist_ok=True)
        scratch.chmod(0o1777)
        environment = dict(os.environ, TMPDIR="/tmp")
        traces = ROOT / "../shared/traces"
        if traces.is_dir():
            environment.setdefault("REPRISE_TRACES", str(traces.resolve()))
        try:
            return self.runner.run([self.build.tree / HERE.relative_to(ROOT) / "sandbox.sh", scratch, *flags, *command], timeout=timeout, env=environment,
                                   preexec_fn=limits)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def find(self, room, twins, work):
        """(outcome, by which test): those most likely to see the fault first, then the others, the quick ones first."""
        todo = [what for what in self.took if what[0] in room.targets]
        todo.sort(key=lambda what: (what[1] not in room.first, self.took[what]))
        trips = [trip for trip in room.programs if trip in self.took]
        if not todo and not trips:
            return "no tests", ""
        programs = {}
        for what in [*todo, *trips]:
            target = "reprise" if what in trips else what[0]
            if target not in programs:
                programs[target] = self.build.link_faulty(target, twins, work)
                if programs[target] is None:
                    return "not built", ""
            if self._finds(what, programs[target], work):
                return "found", " ".join(what)
        return "survived", ""

    def _run(self, what, program, work, limit):
        if what in self.trips:
            with self.recording:
                return self.round_trip(program, what, work, limit)
        return self.unit(program, what[1], work, limit)

    def _finds(self, what, program, work):
        """A test that fails must fail twice, so that no chance counts; one that depends on the machine's time must also
        pass without the fault, now."""
        limit = min(self.timeout, 10 + 5 * self.took[what])
        for _ in range(2):
            status, out = self._run(what, program, work, limit)
            if status == 125:
                raise SystemExit(f"mutate: no sandbox: {out[-500:]}")
            if status == 0:
                return False
            if status is None:
                break  # far too long
        if what[0] not in REAL_TIME:
            return True
        return self._run(what, self.build.build / "tests" / what[0], work, limit)[0] == 0

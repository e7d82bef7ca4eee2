# SPDX-License-Identifier: MIT
"""Owns one run of DLIO and one of `generate` of the same YAML: epoch times and AU of both in the same words."""

import dataclasses
import json
import os
import pathlib
import resource
import shutil
import subprocess

ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "RDMAV_FORK_SAFE": "1",
               "DFTRACER_ENABLE": "0"}


@dataclasses.dataclass
class Run:
    epochs_s: list
    au: list  # of each epoch, percent, the first step left out
    processor_s: float  # user and system time of all its processes
    elapsed_s: float  # of the epochs


def command(words, cwd=None, allowed=(0,), tools=None):
    """What it printed, and its processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
                          env={**os.environ, **ENVIRONMENT, **({"PATH": f"{tools}:{os.environ['PATH']}"} if tools else {})})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in allowed:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Dlio:
    """The workload by DLIO itself; its data below `data`."""

    def __init__(self, python, workload, folder, data):
        self.python, self.name, self.folder, self.data = python, workload.name, pathlib.Path(folder), pathlib.Path(data)
        (self.folder / "workload").mkdir(parents=True, exist_ok=True)
        (self.folder / "workload" / f"{workload.name}.yaml").write_text(workload.text, encoding="ascii")
        self.data.mkdir(parents=True, exist_ok=True)

    def _words(self, *more):
        return [self.python, "-m", "dlio_benchmark.main", "--config-dir", self.folder, f"workload={self.name}", f"hydra.run.dir={self.folder}/out",
                f"++workload.output.folder={self.folder}/out", f"++workload.dataset.data_folder={self.data}/data/{self.name}", *more]

    def make_data(self):
        command(self._words("++workload.workflow.generate_data=True", "++workload.workflow.train=False"), cwd=self.data, tools=self.python.parent)

    def run(self):
        shutil.rmtree(self.folder / "out", ignore_errors=True)
        _, processor = command(self._words(), cwd=self.data)
        summary = json.loads((self.folder / "out" / "summary.json").read_text(encoding="utf-8"))
        stats = json.loads((self.folder / "out" / "per_epoch_stats.json").read_text(encoding="utf-8"))
        times = [float(stats[epoch]["duration"]) for epoch in sorted(stats, key=int)]
        return Run(times, summary["metric"]["train_au_percentage"], processor, sum(times))


class Generated:
    """`reprise generate` of the same YAML, prepared below `data`. `words`: lines that the job file has besides."""

    def __init__(self, reprise, workload, folder, data, words=()):
        self.reprise, self.folder, self.root, self.words = reprise, pathlib.Path(folder), pathlib.Path(data) / "root", words
        self.folder.mkdir(parents=True, exist_ok=True)
        self.yaml, self.log = self.folder / f"{workload.name}.yaml", self.folder / "job.oplog"
        self.yaml.write_text(workload.text, encoding="ascii")

    def generate(self):
        if not self.words:
            command([self.reprise, "generate", "-q", "-f", self.yaml, "--gpus", 1, "-o", self.log])
            return
        job = self.yaml.with_suffix(".ini")
        shown, _ = command([self.reprise, "generate", self.yaml, "--gpus", 1, "--show"])
        named = tuple(word.split("=")[0] + "=" for word in self.words)
        lines = [line for line in shown.splitlines() if not line.startswith(named)]
        job.write_text("\n".join([*lines, *self.words, ""]), encoding="utf-8")
        command([self.reprise, "generate", "-q", "-f", job, "-o", self.log])

    def make_data(self):
        self.generate()
        self.root.parent.mkdir(parents=True, exist_ok=True)
        command([self.reprise, "prepare", "-q", self.log, "--root", self.root])

    def run(self, cache="as-is"):
        made = self.folder / "run.oplog"
        _, processor = command([self.reprise, "replay", "-q", "-f", self.log, "--root", self.root, "--cache", cache, "-o", made], allowed=(0, 1))
        info, _ = command([self.reprise, "info", "--json", made])
        (device,) = json.loads(info)["summary"]["devices"]
        times = [(epoch["end_ns"] - epoch["begin_ns"]) / 1e9 for epoch in device["epochs"]]
        return Run(times, [100 * epoch["au_mlperf"] for epoch in device["epochs"]], processor, sum(times))

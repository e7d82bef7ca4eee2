# SPDX-License-Identifier: MIT
"""A private copy of the sources, its build, and the programs that a fault makes of it.

The copy is built once. A fault then compiles only the objects that read the faulty file, beside the build, and links
the test programs with them: nothing of the build changes, so nothing has to be undone and workers can share it.
"""
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


class Stopped(Exception):
    """The user has had enough."""


class Runner:
    """Runs programs, each in a process group of its own, and ends them on request."""

    def __init__(self):
        self.running = set()
        self.stopped = ""  # by what

    def run(self, command, timeout=None, **options):
        """(exit status, output); the status is None after a timeout."""
        if self.stopped:
            raise Stopped
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, start_new_session=True, **options)
        self.running.add(process)
        try:
            out, _ = process.communicate(timeout=timeout)
            status = process.returncode
        except subprocess.TimeoutExpired:
            self.end(process)
            out, _ = process.communicate()
            status = None
        finally:
            self.running.discard(process)
        if self.stopped:
            raise Stopped
        return status, out.decode(errors="replace")

    @staticmethod
    def end(process):
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            pass

    def stop(self, why):
        self.stopped = why
        for process in list(self.running):
            self.end(process)


def copy_sources(to):
    """Tracked files and new ones, as they are now; times of unchanged files stay, so that the build does."""
    listed = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], cwd=ROOT, check=True,
                            stdout=subprocess.PIPE).stdout.decode().split("\0")
    wanted = {name for name in listed if name and (ROOT / name).is_file()}
    for name in wanted:
        source, copy = ROOT / name, to / name
        if not copy.exists() or copy.read_bytes() != source.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
    for copy in [path for path in to.rglob("*") if path.is_file() or path.is_symlink()]:
        if str(copy.relative_to(to)) not in wanted:
            copy.unlink()


class Build:
    def __init__(self, folder, runner):
        self.folder, self.tree, self.build = folder, folder / "tree", folder / "build"
        self.runner = runner
        self.commands, self.readers, self.links = {}, {}, {}

    def make(self, targets):
        copy_sources(self.tree)
        environment = dict(os.environ, CCACHE_BASEDIR=str(self.tree), CCACHE_NOHASHDIR="1")
        flags = "-w -O0" + (" -fuse-ld=lld" if shutil.which("ld.lld") else "")
        self._must(["cmake", "-S", self.tree, "-B", self.build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=None",
                    "-DREPRISE_BENCH=OFF", "-DREPRISE_TESTS=ON", f"-DCMAKE_CXX_FLAGS={flags}",
                    f"-DCMAKE_MODULE_PATH={self.tree / HERE.relative_to(ROOT) / 'cmake'}"], environment)
        self._must(["cmake", "--build", self.build, "--target", *targets], environment)
        self._read_commands()
        self._read_dependencies()
        for target in targets:
            self._read_link(target)

    def _must(self, command, environment):
        status, out = self.runner.run(command, env=environment)
        if status != 0:
            raise SystemExit(f"mutate: {' '.join(map(str, command[:3]))}... failed\n{out[-4000:]}")

    def _ninja(self, *arguments):
        return subprocess.run(["ninja", "-C", self.build, *arguments], check=True,
                              stdout=subprocess.PIPE).stdout.decode()

    def _read_commands(self):
        for entry in json.loads((self.build / "compile_commands.json").read_text()):
            words = shlex.split(entry["command"])
            if words[0].endswith("ccache"):
                words = words[1:]
            self.commands[words[words.index("-o") + 1]] = words

    def _read_dependencies(self):
        """Which objects read each source file."""
        target = None
        for line in self._ninja("-t", "deps").splitlines():
            if not line.startswith(" "):
                target = line.split(": #deps")[0]
            elif target in self.commands:
                path = Path(os.path.normpath(self.build / line.strip()))
                if path.is_relative_to(self.tree):
                    self.readers.setdefault(str(path.relative_to(self.tree)), []).append(target)

    def _read_link(self, target):
        lines = [line for line in self._ninja("-t", "commands", target).splitlines() if " -o " in line]
        words = shlex.split(lines[-1])
        words = words[words.index("&&") + 1:]
        words = words[:words.index("&&")]
        words = words[1:] if words[0].endswith("ccache") else words
        objects = {word for word in words if word.endswith(".o")}
        for archive in (word for word in words if word.endswith(".a") and not word.startswith("/")):
            inputs = re.findall(r"^    (?:\| )?(\S+\.o)$", self._ninja("-t", "query", archive).split("outputs:")[0], re.M)
            objects |= set(inputs)
        self.links[target] = words, objects

    def test_sources(self, target):
        """The files of tests in a test program."""
        found = (re.search(r"/(test_\w+)\.cpp\.o$", word) for word in self.links[target][0])
        return sorted({match.group(1) for match in found if match})

    def objects_of(self, name, targets):
        needed = set().union(*(self.links[target][1] for target in targets))
        return [o for o in self.readers.get(name, []) if o in needed]

    def compile_faulty(self, name, text, targets, work):
        """{object: its faulty twin}, or None where it does not compile. Empty: no target reads the file."""
        faulty = work / "sources" / name
        faulty.parent.mkdir(parents=True, exist_ok=True)
        faulty.write_text(text)
        twins = {}
        if name.endswith((".c", ".h")) and (self.tree / name).parent.joinpath("reprise.bpf.c").exists():
            return self._compile_bpf(name, work)
        for number, path in enumerate(self.objects_of(name, targets)):
            words, twin = list(self.commands[path]), work / f"{number}.o"
            self._replace(words, "-o", str(twin))
            if words[-1] == str(self.tree / name):
                words[-1] = str(faulty)
            status, _ = self.runner.run([words[0], f"-I{work / 'sources'}", *words[1:]], cwd=self.build, timeout=300)
            if status != 0:
                return None
            twins[path] = str(twin)
        return twins

    def _compile_bpf(self, name, work):
        """The kernel programs, twice, and the object that embeds them."""
        folder = work / "sources" / Path(name).parent
        for path in (self.tree / name).parent.iterdir():
            if not (folder / path.name).exists():
                shutil.copy(path, folder)
        commands = [part for part in self._ninja("-t", "commands", "generated/reprise.bpf.o").split("&&")
                    if "-target bpf" in part]
        made = {}
        for number, command in enumerate(dict.fromkeys(map(str.strip, commands))):
            words = [word for word in shlex.split(command) if word != "-Werror"]
            made[words[words.index("-o") + 1]] = twin = str(work / f"{number}.bpf.o")
            self._replace(words, "-o", twin)
            words = [str(folder / "reprise.bpf.c") if w.endswith("/reprise.bpf.c") else w for w in words]
            status, _ = self.runner.run([words[0], "-w", f"-I{work / 'sources'}", *words[1:]], cwd=self.build,
                                        timeout=300)
            if status != 0:
                return None
        path = next(o for o in self.commands if o.endswith("bpf_object.cpp.o"))
        words, twin = list(self.commands[path]), str(work / "bpf_object.o")
        self._replace(words, "-o", twin)
        for old, new in made.items():
            words = [word.replace(f'"{old}"', f'"{new}"') for word in words]
        status, _ = self.runner.run(words, cwd=self.build)
        return {path: twin} if status == 0 else None

    @staticmethod
    def _replace(words, option, value):
        words[words.index(option) + 1] = value

    def link_faulty(self, target, twins, work):
        """The program of `target` with the faulty objects in place; None where it does not link."""
        words, objects = list(self.links[target][0]), self.links[target][1]
        out = work / Path(target).name
        self._replace(words, "-o", str(out))
        beside = [twin for path, twin in twins.items() if path in objects and path not in words]
        words = [twins.get(word, word) for word in words]
        # Before the archives: what a faulty object defines is not taken from them.
        at = words.index("-o")
        status, _ = self.runner.run([*words[:at], *beside, *words[at:]], cwd=self.build, timeout=300)
        return out if status == 0 else None

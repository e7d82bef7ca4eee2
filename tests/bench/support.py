# SPDX-License-Identifier: MIT
"""Shared by the benchmarks that are scripts: running a command, having the machine alone, arguments and results of those that make a
table of the documentation on storages of their own."""
import argparse
import contextlib
import fcntl
import json
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[2]


def run(*words, allowed=(0,)):
    """What it printed; the benchmark ends where the command fails."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in allowed:
        sys.exit(f"{' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


@contextlib.contextmanager
def alone(lock_file):
    """Holds a lock on the file (flock), if there is one: other work that takes it, too, waits."""
    if lock_file is None:
        yield
        return
    with open(lock_file, "a", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def program(text):
    path = pathlib.Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no {path}; cmake --build --preset release builds it")
    return path


def table_parser(doc, rounds=3):
    """Arguments of a benchmark of real jobs on storages that it makes below --dir."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--dir", default=tempfile.gettempdir())
    parser.add_argument("--reprise", type=program, default=str(TOP / "build/release/reprise"))
    parser.add_argument("--json")
    parser.add_argument("--write-docs", action="store_true")
    return parser


def publish(arguments, name, rows, lines, command, add=False):
    """Prints the table, and writes what was asked for; `rows` are its figures, `add` as of docs_tables.keep_table."""
    print("\n".join(lines))
    if arguments.write_docs:
        sys.path.insert(0, str(TOP / "scripts"))
        import docs_tables
        command += f" --rounds {arguments.rounds}"
        docs_tables.keep_table(name, lines, command, add=add)
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="ascii")

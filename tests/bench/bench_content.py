#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: bench_content.py --bin REPRISE [--dir DIR] [--most 10] [--write-docs]

Do files of `prepare --content recorded` compress as the recorded ones do? Makes files of known kinds, records a job that reads them with
`capture --with content`, prepares a root, and shows what `zstd -1` and `lz4 -1` make of both, each file for itself. Exit code 1 where one is more than
--most percent off, 77: not here. As root; ten seconds. --write-docs: also docs/data/content.json and docs/prepare.md."""
import argparse
import array
import datetime
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import docs_tables  # noqa: E402


def prose(draw, words):
    """Words of a language that nobody speaks, as often as words are (Zipf)."""
    letters = "etaoinshrdlucmfwypvbgk"
    language = ["".join(draw.choices(letters, k=draw.choice((2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9)))) for _ in range(20000)]
    text = draw.choices(language, [1 / (rank + 1) for rank in range(len(language))], k=words)
    return "".join(word + (". " if at % 13 == 12 else "\n" if at % 17 == 5 else " ") for at, word in enumerate(text)).encode()


def kinds(draw):
    """Kind -> ending, contents of its files."""
    lines = [f"{n},{draw.randrange(1000)},{draw.random():.3f},class_{n % 7}" for n in range(60000)]
    text = prose(draw, 3_000_000)
    records = [json.dumps({"id": n, "score": draw.random(), "label": n % 5, "url": f"https://example.org/{draw.getrandbits(60):x}"})
               for n in range(6000)]
    return {
        "40 % noise, 60 % zeros": ("half", [draw.randbytes(40_000) + bytes(60_000) for _ in range(40)]),
        "noise, then 65 % zeros, 1 MB each": ("raw", [draw.randbytes(350_000) + bytes(650_000) for _ in range(30)]),
        "numbers, one a line": ("seq", ["".join(f"{n}\n" for n in range(1, 200_001)).encode()]),
        "prose, 600 KB each": ("txt", [text[at:at + 600_000] for at in range(0, len(text) - 600_000, 600_000)]),
        "prose, 20 KB each": ("md", [text[at:at + 20_000] for at in range(0, 4_000_000, 20_000)]),
        "CSV": ("csv", ["\n".join(lines[at:at + 15_000]).encode() for at in range(0, 60_000, 15_000)]),
        "JSON, 3 KB each": ("json", ["\n".join(records[at:at + 30]).encode() for at in range(0, 6000, 30)]),
        "noise, as JPEG": ("jpg", [draw.randbytes(draw.randrange(80_000, 150_000)) for _ in range(20)]),
        "float32, normal": ("pt", [array.array("f", (draw.gauss(0, 0.02) for _ in range(1_000_000))).tobytes()]),
    }


def packed(tool, files):
    return sum(len(subprocess.run([tool, "-1", "-q", "-c", str(file)], stdout=subprocess.PIPE, check=True).stdout) for file in files)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--dir", type=pathlib.Path, default=pathlib.Path(tempfile.gettempdir()))
    parser.add_argument("--most", type=float, default=10)
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args()
    reprise = str(options.bin.resolve())
    missing = [tool for tool in ("zstd", "lz4") if shutil.which(tool) is None]
    if missing or subprocess.run([reprise, "capture", "--check"], capture_output=True, check=False).returncode != 0:
        print("SKIPPED: " + (f"{' and '.join(missing)} not installed" if missing else "this user cannot record"))
        return 77
    rows = []
    with tempfile.TemporaryDirectory(dir=options.dir) as work:
        data, root, log = pathlib.Path(work, "data"), pathlib.Path(work, "root"), work + "/job.oplog"
        data.mkdir()
        made = kinds(random.Random(1))
        for ending, contents in made.values():
            for number, content in enumerate(contents):
                (data / f"{number:03}.{ending}").write_bytes(content)
        words = ["python3", "-c", f"import glob\nfor name in sorted(glob.glob('{data}/*')): open(name, 'rb').read()"]
        subprocess.run([reprise, "capture", "-q", "--with", "content", "-o", log, "--", *words], check=True)
        subprocess.run([reprise, "prepare", "-q", log, "--root", root, "--map", f"{data}=.", "--content", "recorded"], check=True)
        for kind, (ending, contents) in made.items():
            row = {"kind": kind, "files": len(contents), "bytes": sum(map(len, contents))}
            for tool in ("zstd", "lz4"):
                row[tool], row[tool + "_here"] = packed(tool, data.glob("*." + ending)), packed(tool, root.glob("*." + ending))
                row[tool + "_off"] = 100 * (row[tool + "_here"] / row[tool] - 1)
            rows.append(row)
            print("  ".join([f"{kind:34}", *(f"{tool} {100 * row[tool] / row['bytes']:5.1f} % -> {100 * row[tool + '_here'] / row['bytes']:5.1f} % "
                                           f"({row[tool + '_off']:+.1f} %)" for tool in ("zstd", "lz4"))]), flush=True)
    if options.write_docs:
        docs_tables.save("content", {"date": datetime.date.today().isoformat(), "rows": rows})
        docs_tables.write()
    return 0 if all(abs(row[tool + "_off"]) <= options.most for row in rows for tool in ("zstd", "lz4")) else 1


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# usage: scripts/check-rooms.py [--write]
# Checks that every include follows the arrows of cmake/rooms.txt, that the arrows form no circle, and that
# docs/architecture.md shows the same rooms, and that no two headers define types of one name, which the linker would take
# for one. --write updates the table and the picture of that page.
# SPDX-License-Identifier: MIT
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What a leaf may include of its registry.
CONTRACTS = {"formats/import/importer.h", "formats/export/exporter.h"}
PAGE = "docs/architecture.md"


def read_rooms():
    """{folder: (rooms it may include, sentence)} in the order of the file."""
    rooms = {}
    for number, line in enumerate((ROOT / "cmake/rooms.txt").read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) != 3:
            sys.exit(f"cmake/rooms.txt:{number}: expected FOLDER | ROOMS | SENTENCE")
        rooms[cells[0]] = (cells[1].split(), cells[2])
    return rooms


def reachable(rooms):
    """{folder: every room it may include}; rooms must come before those that use them, so no circle can be."""
    known, all_of = [], {}
    for room, (uses, _) in rooms.items():
        for used in uses:
            if used not in known:
                sys.exit(f"cmake/rooms.txt: {room} uses {used}, which is unknown or comes later")
        all_of[room] = {room, "formats/support"}.union(*(all_of[used] for used in uses))
        known.append(room)
    return all_of


def room_of(path, rooms):
    """The innermost room that holds a file; kernel programs belong to the room around them."""
    folder = str(pathlib.PurePosixPath(path).parent)
    while folder not in rooms and "/" in folder:
        folder = folder.rsplit("/", 1)[0]
    return folder if folder in rooms else None


def sources():
    out = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cpp", "*.def", "*.c"],
                         cwd=ROOT, capture_output=True, text=True, check=False).stdout.split()
    return [path for path in out if (ROOT / path).exists()]


def bad_includes(rooms):
    may, bad = reachable(rooms), []
    for path in sources():
        room = room_of(path, rooms)
        if not room:
            if not path.startswith(("cli/", "tests/", "examples/", "markers/")):
                bad.append(f"{path}: lies in no room of cmake/rooms.txt")
            continue
        # The build looks for sources in the folders of rooms only; a kernel program has its own rules.
        if path.endswith(".cpp") and str(pathlib.PurePosixPath(path).parent) != room:
            bad.append(f"{path}: its folder is not in cmake/rooms.txt, so it is not built")
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*"([^"]+/[^"]+)"', line)
            if not found or found[1] in CONTRACTS:
                continue
            target = room_of(found[1], rooms)
            if target not in may[room]:
                bad.append(f"{path}:{number}: {room} may not include {found[1]}")
    return bad


def same_types():
    """Types of one qualified name in two headers: the linker merges their functions, whichever they are."""
    seen, bad = {}, []
    for path in sources():
        if not path.endswith(".h"):
            continue
        spaces = []
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            if found := re.match(r"namespace ?([\w:]*) ?\{", line):
                spaces.append(found[1])
            elif re.match(r"\}.*// namespace", line) and spaces:
                spaces.pop()
            elif spaces and (found := re.match(r"(?:struct|class|enum class) (?:alignas\([^)]*\) )?([\w:]+)[^;]*\{", line)):
                name = "::".join(spaces + [found[1]])
                if name in seen and seen[name].split(":")[0] != path:
                    bad.append(f"{path}:{number}: {name} is defined in {seen[name]}, too")
                seen.setdefault(name, f"{path}:{number}")
    return bad


def page(rooms):
    """The generated part of the page."""
    lines = ["| room | does | may include |", "|---|---|---|"]
    for room, (uses, sentence) in rooms.items():
        arrows = ", ".join(f"`{used}`" for used in uses) or ("–" if room == "formats/support" else "`formats/support`")
        lines.append(f"| `{room}` | {sentence} | {arrows} |")
    lines.append("| `cli` | the command line: `main`, one file per subcommand, tables, help | all |")
    return "\n".join(lines)


def main():
    rooms = read_rooms()
    bad = bad_includes(rooms) + same_types()
    path = ROOT / PAGE
    text = path.read_text()
    made = re.sub(r"(<!-- rooms: begin[^>]*-->\n).*?(<!-- rooms: end -->)",
                  lambda m: m[1] + page(rooms) + "\n" + m[2], text, flags=re.S)
    if made != text:
        if "--write" in sys.argv[1:]:
            path.write_text(made)
        else:
            bad.append(f"{PAGE}: the table of rooms differs from cmake/rooms.txt; update it with scripts/check-rooms.py --write")
    print("\n".join(bad), end="\n" if bad else "")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

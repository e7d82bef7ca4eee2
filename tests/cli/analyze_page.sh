#!/usr/bin/env bash
# What a browser makes of the pages of `reprise analyze` and `compare --html`: no error, what is drawn is what the JSON
# holds, and no name in a log becomes code. Needs Chromium.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"

command -v python3 >/dev/null || skip "no python3"
command -v chromium >/dev/null || skip "Chromium is not installed (scripts/ensure-packages.sh timeline)"
look() { run 0 timeout 100 python3 "$(dirname "$0")/analyze/look_at_page.py" "$@"; }

run 0 "$REPRISE" analyze "$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog" --html "$tmp/a.html" --json="$tmp/a.json"
look "$tmp/a.html" --json "$tmp/a.json"

# Names that would like to be code.
cat >"$tmp/evil.strace" <<'END'
100 1700000010.000000 openat(AT_FDCWD, "/data/</script><script>window.hacked=1</script>", O_RDONLY) = 3 <0.000010>
100 1700000010.000100 read(3, ""..., 4096) = 4096 <0.000010>
100 1700000010.000200 close(3) = 0 <0.000010>
100 1700000010.000300 openat(AT_FDCWD, "/data/\"'><img src=x onerror=window.hacked=2>", O_RDONLY) = 3 <0.000010>
100 1700000010.000400 read(3, ""..., 4096) = 4096 <0.000010>
100 1700000010.000500 close(3) = 0 <0.000010>
100 1700000010.000600 openat(AT_FDCWD, "/data/a\342\200\250\377b`${window.hacked=3}", O_RDONLY) = 3 <0.000010>
100 1700000010.000700 read(3, ""..., 4096) = 4096 <0.000010>
100 1700000010.000800 close(3) = 0 <0.000010>
100 1700000010.000900 +++ exited with 0 +++
END
run 0 "$REPRISE" import "$tmp/evil.strace" -o "$tmp/evil.oplog"
cp "$tmp/evil.oplog" "$tmp/<img src=x onerror=window.hacked=4>.oplog"
run 0 "$REPRISE" analyze "$tmp/evil.oplog" "$tmp/<img src=x onerror=window.hacked=4>.oplog" -o "$tmp/evil.html"
look "$tmp/evil.html" --shows '/data/</script><script>window.hacked=1</script>' --shows "/data/\"'><img src=x onerror=window.hacked=2>" \
    --shows '<img src=x onerror=window.hacked=4>'

# Both sides of a comparison in each chart, of a log and of files with such names.
run 0 "$REPRISE" replay -q --engine null --pace afap "$tmp/evil.oplog" --runs 12 -o "$tmp/<script>window.hacked=5<.oplog"
run 0 "$REPRISE" compare "$tmp/"*hacked=5*.[1-6].oplog --against "$tmp/"*hacked=5*.{7,8,9,10,11,12}.oplog --threshold elapsed=100000% \
    --threshold throughput=100000% --threshold p50=100000% --threshold p99=100000% --html "$tmp/compare.html"
look "$tmp/compare.html" --shows 'Where the time of all tasks went'
finish

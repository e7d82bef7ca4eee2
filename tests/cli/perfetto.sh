#!/usr/bin/env bash
# What the Perfetto UI itself makes of an exported timeline: no error, every op a slice, every edge an arrow. Needs Chromium, and
# the UI in the folder that REPRISE_PERFETTO_UI names (docs/timeline.md tells where to get it).
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"

ui=${REPRISE_PERFETTO_UI:-}
[[ -n $ui ]] || skip "REPRISE_PERFETTO_UI names no folder with the Perfetto UI (docs/timeline.md)"
[[ -f $ui/index.html ]] || fail "REPRISE_PERFETTO_UI: no index.html in $ui"
command -v python3 >/dev/null || skip "no python3"
command -v chromium >/dev/null || skip "Chromium is not installed (scripts/ensure-packages.sh timeline)"

ops="from slice where extract_arg(arg_set_id, 'args.op') is not null"
opened() { # NAME LOG: $tmp/NAME.json is what the UI says, $tmp/NAME.info what the log says
    run 0 "$REPRISE" info "$2" --json
    cp "$out" "$tmp/$1.info"
    run 0 "$REPRISE" export "$2" --to perfetto -o "$tmp/$1.json.gz"
    run 0 timeout 300 python3 "$(dirname "$0")/perfetto/open_timeline.py" "$tmp/$1.json.gz" --ui "$ui" --seconds 100 \
        --screenshot "$tmp/$1.png" \
        --query "select name, count(*) $ops group by 1" \
        --query "select count(*) from flow" \
        --query "select thread.name, count(*) from slice join thread_track t on slice.track_id = t.id join thread using (utid)
                 where category in ('marker', 'accelerator') and slice.name not glob 'gpu_*' group by 1 order by 1" \
        --query "select process.name, t.name, count(*) from counter join process_counter_track t on counter.track_id = t.id
                 join process using (upid) group by 1, 2 order by 1, 2" \
        --query "select count(*) $ops and dur < 0" \
        --query "select count(*) from slice where extract_arg(arg_set_id, 'args.file') is not null"
    cp "$out" "$tmp/$1.opened"
}
"$REPRISE_BUILD_DIR/programs/sample_log" sample "$tmp/a.oplog"
opened sample "$tmp/a.oplog"
opened resnet "$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog"
[[ $failures == 0 ]] || finish

python3 - "$tmp" <<'PYTHON' || fail "the UI shows something else than the log holds"
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
def load(name):
    info = json.loads((folder / f"{name}.info").read_text())["summary"]
    seen = json.loads((folder / f"{name}.opened").read_text())
    assert seen["errors"] == 0 and not seen["stats"] and not seen["loading_errors"], seen
    assert not seen["exceptions"], seen["exceptions"]
    assert (folder / f"{name}.png").stat().st_size > 20_000
    slices, flows, lanes, counters, unfinished, files = seen["queries"]
    kinds = {row["kind"]: row["ops"] for row in info["kinds"] if row["kind"] != "marker"}
    assert dict(map(tuple, slices)) == kinds, (slices, kinds)
    assert unfinished == [[0]], unfinished
    return info, flows[0][0], dict(map(tuple, lanes)), {(p, n): c for p, n, c in counters}, files[0][0]

info, flows, lanes, counters, files = load("sample")
assert flows == 1, flows
assert lanes == {"accelerator 0": 6, "markers of main 100": 2, "markers of worker 101": 1}, lanes
assert {name for _, name in counters} == {"read MB/s", "write MB/s"}, counters

info, flows, lanes, counters, files = load("resnet")
assert flows == info["edges"], (flows, info["edges"])
names = {name for _, name in counters}
assert {"read MB/s", "I/O pressure, some %", "device read latency us"} <= names, names
assert files > 20_000, files
PYTHON
finish

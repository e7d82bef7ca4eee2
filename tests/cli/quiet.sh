#!/usr/bin/env bash
# -q has one meaning in every command: results and errors, warnings and losses; no progress, no notes. Where the result
# is a file, that says nothing more.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
"$REPRISE_BUILD_DIR/programs/sample_log" sample a.oplog
"$REPRISE_BUILD_DIR/programs/sample_log" run run.oplog
printf 'fio version 3 iolog\n0 /data/in add\n0 /data/in open\n0 /data/in read 0 4096\n0 /data/in close\n' >job.log

silent() {
    run 0 "$REPRISE" "$@"
    empty "$out"
    empty "$err"
}
# Where a file is the result.
run 0 "$REPRISE" import -q job.log -o job.oplog
lacks "$out" "job.oplog: "
lacks "$out" "  note "
contains "$out" "warning "
silent prepare -q job.oplog --root root
silent prepare -q job.oplog --root root --reset
silent anonymize -q a.oplog -o b.oplog
silent export -q a.oplog --to perfetto -o a.json
silent dump -q a.oplog -o a.txt
storage_model model.json
run 0 "$REPRISE" calibrate -q -o host.json
empty "$out"
equal "$(grep -v 'others used' "$err")" ""  # a warning, where other tests run
# What was lost is said, what is only worth knowing is not.
sed 's/read 0 4096/read nonsense/' job.log >bad.log
run 1 "$REPRISE" import bad.log -o bad.oplog
contains "$out" "bad.oplog: "
contains "$out" " note "
run 1 "$REPRISE" import -q bad.log -o bad.oplog -f
lacks "$out" "bad.oplog: "
lacks "$out" "  note "
contains "$out" "loss "

# Where the output is the result.
for command in "info a.oplog" "compare a.oplog run.oplog" "replay job.oplog --root root --pace afap" \
    "predict job.oplog --storage model.json" "dump a.oplog" "ops" "calibrate --storage $tmp"; do
    # shellcheck disable=SC2086
    run 0 "$REPRISE" $command -q
    [[ -s $out ]] || fail "no result: $command -q"
    equal "$(grep -v 'others used' "$err")" ""
    lacks "$out" "note: "
    lacks "$out" "  note "
done
run 0 "$REPRISE" info a.oplog
contains "$out" "  note "
run 0 "$REPRISE" compare a.oplog run.oplog
contains "$out" "note: "
if can_record; then
    silent capture -q -o c.oplog -- true
else
    echo "not tried: capture (it does not work here)"
fi
finish

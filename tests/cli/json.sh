#!/usr/bin/env bash
# --json has one meaning in every command: alone it prints JSON, and nothing else, on standard output; --json=FILE
# writes a file beside the usual output, one that exists only with -f; it never takes the next word.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
command -v python3 >/dev/null || skip "no python3"
cd "$tmp" || exit 1
"$REPRISE_BUILD_DIR/programs/sample_log" sample a.oplog
"$REPRISE_BUILD_DIR/programs/sample_log" run run.oplog
printf 'fio version 3 iolog\n0 /data/in add\n0 /data/in open\n0 /data/in read 0 4096\n0 /data/in close\n' >job.log
run 0 "$REPRISE" import job.log -o job.oplog
cat >profile.json <<'END'
{"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": []}
END

is_json() { python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$1" || fail "$1 is not JSON: $2"; }
is_json_lines() { python3 -c 'import json, sys; [json.loads(line) for line in open(sys.argv[1])]' "$1" || fail "$1 is not JSON lines: $2"; }

# check JSON COMMAND...: the three ways of --json.
check() {
    local kind=$1
    shift
    run 0 "$REPRISE" "$@" --json
    "$kind" "$out" "$* --json"
    cp "$out" alone.txt
    rm -f x.json
    run 0 "$REPRISE" "$@" --json=x.json
    "$kind" x.json "$* --json=x.json"
    ! cmp -s "$out" alone.txt || fail "the same output beside a file: $*"
    run 2 "$REPRISE" "$@" --json=x.json
    contains "$err" "x.json exists"
    contains "$err" "--force"
    run 0 "$REPRISE" "$@" -f --json=x.json
    run 2 "$REPRISE" "$@" -f --json="$tmp"
    contains "$err" "is a directory"
}

run 0 "$REPRISE" prepare job.oplog --root root
check is_json info a.oplog
check is_json compare a.oplog run.oplog
check is_json ops
check is_json ops --counters
check is_json prepare job.oplog --root root
check is_json replay job.oplog --root root --pace afap
check is_json export a.oplog --to csv -o /dev/null
check is_json_lines dump a.oplog
run 0 "$REPRISE" anonymize a.oplog -o b.oplog --json
is_json "$out" anonymize
run 0 "$REPRISE" anonymize a.oplog -o b.oplog -f --json=b.json
is_json b.json anonymize
run 0 "$REPRISE" import job.log -o c.oplog --json
is_json "$out" import
run 0 "$REPRISE" import job.log -o c.oplog -f --json=c.json
is_json c.json import
contains "$out" "c.oplog: "
if [[ -z ${REPRISE_SANITIZE:-} ]]; then
    run 0 "$REPRISE" calibrate --dir "$tmp" --json
    is_json "$out" calibrate
    run 0 "$REPRISE" calibrate --storage "$tmp" -o model.json --json
    is_json "$out" "calibrate --storage"
else
    echo "with a sanitizer, calibrate is left to predict.sh: a measurement takes half a minute"
    storage_model model.json
fi
check is_json predict job.oplog --storage model.json

# Never the next word.
run 2 "$REPRISE" info --json x.json a.oplog
contains "$err" "too many arguments"
contains "$err" "--json=FILE"
run 2 "$REPRISE" info a.oplog --json=
# Nothing that is read or written is overwritten.
cp a.oplog before.oplog
run 2 "$REPRISE" info a.oplog -f --json=a.oplog
contains "$err" "would overwrite a.oplog"
run 2 "$REPRISE" replay job.oplog --root root -f -o same --json=same
contains "$err" "the same file"
cmp -s a.oplog before.oplog || fail "an input was overwritten"
run 2 "$REPRISE" export a.oplog --to csv -o - --json
run 2 "$REPRISE" dump a.oplog -o a.txt --json
contains "$err" "--json=FILE"
run 0 "$REPRISE" info a.oplog --json=/dev/null
# In the help and the man page.
for command in info replay capture; do
    run 0 "$REPRISE" "$command" --help
    contains "$out" "--json[=FILE]"
    run 0 "$REPRISE" __man "$command"
    contains "$out" '\-\-json[=FILE]'
done
# A recording prints its summary after the job's own output.
if can_record; then
    run 0 "$REPRISE" capture --json -o d.oplog -- echo hello
    equal "$(head -n 1 "$out")" hello
    sed 1d "$out" >d.json
    is_json d.json capture
    empty "$err"
    run 0 "$REPRISE" capture --json=e.json -f -o d.oplog -- echo hello
    equal "$(cat "$out")" hello
    is_json e.json capture
    contains "$err" "d.oplog: "
else
    echo "not tried: capture (it does not work here)"
fi
finish

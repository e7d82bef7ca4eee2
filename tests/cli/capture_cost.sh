#!/usr/bin/env bash
# What a recording says of its own cost, and of memory that cost more than usual. Needs root and BPF.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
"$REPRISE" capture --check >check.txt 2>&1 || skip "this machine cannot record: $(head -n 1 check.txt)"
command -v perl >/dev/null || skip "perl is not installed"

# number FILE KEY: of a summary in JSON
number() { sed -n "s/^ *\"$2\": \(-\{0,1\}[0-9.e-]*\),\{0,1\}$/\1/p" "$1" | head -n 1; }
# sum RAW KEY: over the records of faults
sum() { "$REPRISE" __raw "$1" | sed -n "s/^FAULTS .* $2=\([0-9]*\).*/\1/p" | awk '{ n += $1 } END { print n + 0 }'; }
# cost LOG KIND: ns of one event, as the recorder measured it
cost() { "$REPRISE" info --json "$1" | sed -n "s/.*\"capture.costs\": .*[{,]\\\\\"$2\\\\\":\([0-9]*\).*/\1/p" | head -n 1; }

# 64 MiB that the program itself fills: 16384 pages, fewer faults where huge pages are made of themselves.
touches=(perl -e 'my $x = "a" x 67108864; print length $x')
run 0 "$REPRISE" capture --raw --json=usual.json -o usual.oplog -- "${touches[@]}"
contains "$err" "recorder: "
contains "$err" " of the machine; "
contains "$err" " before the job and "
for key in before_ns after_ns recorder_cpu_ns taken_off_ns compute_ns; do
    [[ $(number usual.json $key) -gt 0 ]] || fail "$key is '$(number usual.json $key)'"
done
awk -v share="$(number usual.json recorder_share)" 'BEGIN { exit !(share > 0 && share <= 1) }' || fail "share of the machine"
all=0
for kind in call switch fault folio; do
    value=$(cost usual.oplog $kind)
    [[ $value =~ ^[0-9]+$ && $value -le 10000 ]] || fail "a $kind costs '$value' ns"
    all=$((all + value))
done
[[ $all -gt 0 ]] || fail "nothing costs anything" # a busy machine may show none of one kind
faults=$(sum usual.raw faults)
[[ $faults -ge 128 ]] || fail "$faults faults were told"
# What was taken off holds the faults', and the calls' beside.
[[ $(number usual.json taken_off_ns) -gt $((faults * $(cost usual.oplog fault))) ]] || fail "the faults' cost was not taken off"
run 0 "$REPRISE" info usual.oplog
contains "$out" "of the recorder's own between calls"

# Where a page is said to take a nanosecond, all of them are dear.
REPRISE_CAPTURE_PAGE_NS=1 run 0 "$REPRISE" capture --raw --json=dear.json -f -o dear.oplog -- "${touches[@]}"
contains "$err" "memory: "
contains "$err" "new pages of memory took"
pages=$(number dear.json dear_pages)
[[ $pages -ge 8192 ]] || fail "of 16384 pages $pages were dear"
equal "$(sum dear.raw dear)" "$pages"
equal "$(sum dear.raw ns)" "$(number dear.json dear_ns)"
equal "$(number dear.json usual_page_ns)" 1
run 0 "$REPRISE" info dear.oplog
contains "$out" "new pages of memory took"
contains "$out" "left out of compute"
run 0 "$REPRISE" import -f dear.raw -o again.oplog
run 0 "$REPRISE" info again.oplog
contains "$out" "new pages of memory took"
# Without the faults nothing is known, and nothing said.
REPRISE_CAPTURE_PAGE_NS=1 run 0 "$REPRISE" capture --without faults --json=none.json -f -o none.oplog -- "${touches[@]}"
lacks "$err" "memory: "
equal "$(number none.json dear_pages)" 0

# A replay says what it took around its elapsed time.
run 0 "$REPRISE" prepare usual.oplog --root root
rc=0 # 1: this machine did not keep up
"$REPRISE" replay -v usual.oplog --root root --json=replay.json >"$out" 2>"$err" || rc=$?
[[ $rc == 0 || $rc == 1 ]] || fail "exit code $rc of the replay: $(head -n 3 "$err")"
contains "$out" " before its first op was due and "
for key in before_s after_s; do
    awk -v s="$(number replay.json $key)" 'BEGIN { exit !(s > 0 && s < 60) }' || fail "$key is '$(number replay.json $key)'"
done
finish

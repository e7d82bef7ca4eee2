#!/usr/bin/env bash
# Mistakes that users make: each ends with an exit code other than 0, and its first line names the mistake.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

# mistake CODE TEXT COMMAND...: TEXT is in the first line that COMMAND prints, on either stream.
mistakes=0
mistake() {
    local want=$1 text=$2
    shift 2
    mistakes=$((mistakes + 1))
    run "$want" "$@"
    head -qn 1 "$out" "$err" | grep -qF -- "$text" || { fail "'$text' is not in the first line of: $*"; head -n 3 "$out" "$err"; }
}

# A job that reads ten files and writes one; another one that reads one file.
{
    echo "fio version 3 iolog"
    for i in 0 1 2 3 4 5 6 7 8 9; do
        printf '%d /data/in%d add\n%d /data/in%d open\n%d /data/in%d read 0 4096\n%d /data/in%d close\n' \
            $((i * 100)) $i $((i * 100)) $i $((i * 100)) $i $((i * 100)) $i
    done
    printf '2000 /data/out add\n2000 /data/out open\n2000 /data/out write 0 4096\n2000 /data/out close\n'
} >job.log
run 0 "$REPRISE" import job.log -o job.oplog
printf 'fio version 3 iolog\n0 /else/x add\n0 /else/x open\n0 /else/x read 0 4096\n0 /else/x close\n' >other.log
run 0 "$REPRISE" import other.log -o other.oplog

# A replay of nothing.
mkdir empty
mistake 4 "was not prepared for changes" "$REPRISE" replay job.oplog --root empty --pace afap
mistake 1 "NOT THE SAME JOB: " "$REPRISE" replay job.oplog --root empty --pace afap --read-only
mistake 1 "NOT THE SAME JOB: 3 of 3 I/O ops (100 %) have another result than in the recording, most often open" \
    "$REPRISE" replay other.oplog --root empty --pace afap
contains "$out" "/else/x: here ENOENT, recorded 3."
mistake 1 "3 of 3 I/O ops (100 %) have another result" "$REPRISE" replay -q other.oplog --root empty --pace afap
run 0 "$REPRISE" prepare job.oplog --root root
mistake 4 "the root root was prepared for another log, job.oplog" "$REPRISE" replay other.oplog --root root --pace afap
contains "$err" "prepare it for this one: reprise prepare other.oplog --root root"
mistake 4 "the root root was prepared with no --map, not with --map /data=." "$REPRISE" replay job.oplog --root root --pace afap --map /data=.
run 0 "$REPRISE" replay job.oplog --root root --pace afap
run 0 "$REPRISE" replay job.oplog --root root --pace afap
contains "$out" "note: Earlier replays changed files in this root. Restore them first with reprise prepare job.oplog --root root --reset."

# Two at once.
flock -F -s root/.reprise-prepared sleep 60 &
holder=$!
for _ in $(seq 100); do flock -n root/.reprise-prepared true || break; sleep 0.05; done
mistake 4 "the root root is in use by another reprise process" "$REPRISE" replay job.oplog --root root --pace afap
mistake 4 "the root root is in use by another reprise process" "$REPRISE" prepare job.oplog --root root
mistake 4 "the root root is in use by another reprise process" "$REPRISE" prepare job.oplog --root root --reset
kill $holder
wait $holder 2>/dev/null
run 0 "$REPRISE" prepare job.oplog --root root --reset

# Selectors that match nothing.
mistake 2 "--only 'datset' is neither a role nor a path; did you mean dataset?" "$REPRISE" info job.oplog --only datset
for command in "replay job.oplog --root root" "prepare job.oplog --root root" "info job.oplog" "dump job.oplog" "export job.oplog --to csv -o x.csv"; do
    # shellcheck disable=SC2086
    mistake 2 "--only '/nowhere/' matches no file of job.oplog" "$REPRISE" $command --only /nowhere/
    # shellcheck disable=SC2086
    mistake 2 "--only 'checkpoint' matches no file of job.oplog" "$REPRISE" $command --only checkpoint
    # shellcheck disable=SC2086
    mistake 2 "--not '/nowhere' matches no file of job.oplog" "$REPRISE" $command --not /nowhere
done
mistake 2 "--map /nowhere=. matches no file of job.oplog" "$REPRISE" replay job.oplog --root root --map /nowhere=.
mistake 2 "--map /nowhere=x matches no file of job.oplog" "$REPRISE" prepare job.oplog --root root --map /nowhere=x
run 0 "$REPRISE" info job.oplog --only checkpoint --allow-empty
run 0 "$REPRISE" info job.oplog --only dataset,checkpoint --allow-empty
run 0 "$REPRISE" info job.oplog --only /data/ --files
contains "$out" "/data/in3"
run 0 "$REPRISE" info job.oplog --only /data/in3,/data/in4 --files
contains "$out" "/data/in3"
lacks "$out" "/data/in5"

# What is there already is not replaced unasked.
echo precious >there
for command in "export job.oplog --to csv" "export job.oplog --to perfetto" "dump job.oplog" "import job.log" "anonymize job.oplog"; do
    # shellcheck disable=SC2086
    mistake 2 "there exists" "$REPRISE" $command -o there
    contains "$err" "use --force to overwrite it"
done
mistake 2 "the output would overwrite the log" "$REPRISE" dump -f job.oplog -o job.oplog
mistake 2 "there/ cannot be made: there is a file of that name" "$REPRISE" export job.oplog --to fio -o there/
equal "$(cat there)" precious
mistake 2 "the output is a directory: empty" "$REPRISE" export job.oplog --to csv -o empty
run 0 "$REPRISE" export job.oplog --to fio -o fio/
mistake 2 "fio/replay.fio exists" "$REPRISE" export job.oplog --to fio -o fio/
run 0 "$REPRISE" export -f job.oplog --to fio -o fio/
run 0 "$REPRISE" dump -f job.oplog -o there
run 0 "$REPRISE" dump job.oplog -o /dev/null

# A profile that is none, and sizes that are too small to be meant.
echo '{"a": 1}' >bad.json
mistake 3 "bad.json: is neither a profile nor an op log" "$REPRISE" graft job.oplog bad.json -o whole.oplog
mistake 2 "--ring '3' is 3 bytes" "$REPRISE" capture --ring 3 -o c.oplog -- /bin/true
contains "$err" "--ring 3M"
mistake 2 "--ring '65536' is 65,536 bytes" "$REPRISE" capture --ring 65536 -o c.oplog -- /bin/true
mistake 2 "-o is required" "$REPRISE" capture true -o c.oplog
contains "$err" "before the command"
mistake 2 "--ring '1K' is 1,024 bytes" "$REPRISE" capture --ring 1K -o c.oplog -- /bin/true

mistake 3 "job.oplog: this log carries no profile of the machine" "$REPRISE" calibrate --compare job.oplog
mistake 3 "bad.json:/reprise_host_profile: the field is missing" "$REPRISE" calibrate --compare bad.json

# One read of most of the bytes, of a file that is shorter now; and a log without ops.
{
    echo "fio version 3 iolog"
    echo "0 /data/big add"
    echo "0 /data/big open"
    for i in $(seq 1500); do echo "$i /data/big read 0 512"; done
    echo "1600 /data/big read 0 4194304"
    echo "1700 /data/big close"
} >big.log
run 0 "$REPRISE" import -q big.log -o big.oplog
run 0 "$REPRISE" prepare -q big.oplog --root bigroot
truncate -s 600 bigroot/data/big
mistake 1 "MiB were not read or written" "$REPRISE" replay big.oplog --root bigroot --pace afap
echo "fio version 3 iolog" >none.log
run 0 "$REPRISE" import -q none.log -o none.oplog
run 0 "$REPRISE" prepare -q none.oplog --root noneroot
mistake 1 "No op was performed" "$REPRISE" replay none.oplog --root noneroot
run 2 "$REPRISE" replay job.oplog job.oplog --root root -o job.oplog
contains "$err" "the output is the recording itself"

# A cache regime that there is not.
mistake 2 "'hot'" "$REPRISE" replay job.oplog --root root --cache hot
for regime in cold warm recorded as-is; do contains "$err" "$regime"; done

# A link that somebody planted where a scratch file will be is replaced, not followed.
echo precious >precious
for name in again.oplog.partial x.csv.partial; do ln -s precious "$name"; done
run 0 "$REPRISE" import job.log -o again.oplog
run 0 "$REPRISE" export job.oplog --to csv -o x.csv
equal "$(cat precious)" precious

# A capture that could not begin is not in the way of the corrected command.
if "$REPRISE" capture --check >/dev/null 2>&1; then
    mistake 2 "./no-such-program cannot be started" "$REPRISE" capture -o c.oplog -- ./no-such-program
    [[ ! -e c.raw && ! -e c.oplog ]] || fail "a failed capture left $(echo c.*)"
    run 0 "$REPRISE" capture -o c.oplog -- /bin/true
else
    echo "not tried: capture (it does not work here)"
fi

# Limits of the process: named, with what to do, and no signal ends the command without a word.
limited() {
    local limit=$1
    shift
    bash -c "ulimit $limit && exec \"\$@\"" bash "$@"
}
{
    echo "fio version 3 iolog"
    for i in $(seq 400); do printf '%d /d/%x add\n%d /d/%x open\n' "$i" "$((i * 7919 * RANDOM))" "$i" "$((i * 104729 * RANDOM))"; done
} >names.log
mistake 4 "z.oplog.partial: cannot be written: file size limit (ulimit -f)" limited "-f 1" "$REPRISE" import names.log -o z.oplog
contains "$err" "ulimit -f unlimited"
[[ ! -e z.oplog.partial ]] || fail "a .partial file is left"
mistake 4 "file size limit (ulimit -f)" limited "-f 1" "$REPRISE" prepare -q job.oplog --root small
mistake 4 "cannot make the bytes that the replay writes: file size limit (ulimit -f)" \
    limited "-f 1" "$REPRISE" replay -q job.oplog --root root --pace afap
# The sanitizers need descriptors themselves, to tell an object from none.
if [[ -z ${REPRISE_SANITIZE:-} ]]; then
    mistake 4 "limit of open descriptors (ulimit -n 8)" limited "-n 8" "$REPRISE" prepare -q job.oplog --root few
    mistake 4 "limit of open descriptors (ulimit -n 10)" limited "-n 10" "$REPRISE" prepare -q job.oplog --root few
    if "$REPRISE" capture --check >/dev/null 2>&1; then
        mistake 4 "limit of open descriptors (ulimit -n 12) is below" limited "-n 12" "$REPRISE" capture -f -o c.oplog -- /bin/true
    fi
fi
mistake 4 "the stack limit (ulimit -s) is 64 KiB" limited "-s 64" "$REPRISE" replay job.oplog --root root --pace afap
run 0 limited "-S -s 64" "$REPRISE" replay job.oplog --root root --pace afap

# A key that is a directory, or nothing.
: >nothing
mistake 3 ": cannot read the key" "$REPRISE" anonymize job.oplog -o y.oplog --key-file empty
mistake 3 "nothing: cannot read the key" "$REPRISE" anonymize job.oplog -o y.oplog --key-file nothing

[[ $mistakes -ge 40 ]] || fail "only $mistakes mistakes were made"
finish

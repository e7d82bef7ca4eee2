#!/usr/bin/env bash
# Mistakes that users make: each ends with an exit code other than 0 (0 where a tolerance asks for that), and its first
# line names the mistake.
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
run 0 "$REPRISE" replay job.oplog --root root --pace afap -v
contains "$out" "note: Earlier replays changed files in this root. Restore them first with reprise prepare job.oplog --root root --reset."

# A root that its user may not enter.
if command -v setpriv >/dev/null && [[ $EUID == 0 ]]; then
    chmod 711 . && chmod 700 root
    mistake 4 "cannot use the root root: Permission denied" \
        setpriv --reuid 65534 --regid 65534 --clear-groups "$REPRISE" replay job.oplog --root root --pace afap --read-only
    chmod 755 root
    # ... or not write to, where earlier replays changed it, or none did.
    mistake 4 "cannot write root/.reprise-prepared: Permission denied" \
        setpriv --reuid 65534 --regid 65534 --clear-groups "$REPRISE" replay job.oplog --root root --pace afap
    run 0 "$REPRISE" prepare job.oplog --root root --reset
    mistake 4 "cannot write root/.reprise-prepared: Permission denied" \
        setpriv --reuid 65534 --regid 65534 --clear-groups "$REPRISE" replay job.oplog --root root --pace afap
    run 0 setpriv --reuid 65534 --regid 65534 --clear-groups "$REPRISE" replay job.oplog --root root --pace afap --read-only
    run 0 "$REPRISE" replay job.oplog --root root --pace afap
else
    echo "NOT TESTED: a root that its user may not enter or write to: that needs root and setpriv"
fi

# It is named beside the reason where the run was another job.
mv root/data/in0 in0
run 1 "$REPRISE" replay job.oplog --root root --pace afap --json=changed.json
mv in0 root/data/in0
contains changed.json "Earlier replays changed this root: reprise prepare job.oplog --root root --reset."

# A truncated log: refused, or what is whole of it, said aloud wherever it is used.
head -c $(($(stat -c %s job.oplog) - 20)) job.oplog >cut.oplog
storage_model model.json
for command in "replay cut.oplog --root part" "prepare cut.oplog --root part" "predict cut.oplog --storage model.json"; do
    # shellcheck disable=SC2086
    run 3 "$REPRISE" $command
    contains "$err" "replay, predict and others take --recover"
done
mkdir part2
run 4 "$REPRISE" replay cut.oplog --root part2 --recover
contains "$err" "lay it out first: reprise prepare cut.oplog --recover --root part2"
run 0 "$REPRISE" prepare cut.oplog --root part --recover
contains "$err" "recovered: read up to byte"
run 0 "$REPRISE" replay cut.oplog --root part --recover --json=part.json
contains "$err" "recovered: read up to byte"
contains "$out" "what-if: --recover; not the job as recorded"
contains "$out" "A PART OF IT (the log was truncated): "
contains "$out" "POOR"
lacks "$out" "SAME"
lacks "$out" "95 %"
python3 -c 'import json; run = json.load(open("part.json")); assert run["truncated"] and not run["same_job"], run' || fail "JSON"
run 0 "$REPRISE" predict cut.oplog --storage model.json --recover
contains "$out" "what-if: --recover; not the job as recorded"
contains "$out" "the log was truncated: what the job did after its last complete block is missing"
lacks "$out" "95 %"
run 2 "$REPRISE" replay cut.oplog other.oplog --root part --recover
contains "$err" "--recover with several recordings"

# Of a log without ops nothing can be said.
size=$(stat -c %s job.oplog)
for ((keep = 200; keep < size; keep += 50)); do
    head -c "$keep" job.oplog >empty_log.oplog
    "$REPRISE" info empty_log.oplog --recover >"$out" 2>/dev/null && grep -qE '^  ops +0,' "$out" && break
done
for command in "compare empty_log.oplog empty_log.oplog" "predict empty_log.oplog --storage model.json" "analyze empty_log.oplog"; do
    # shellcheck disable=SC2086
    run 3 "$REPRISE" $command --recover
    contains "$err" "empty_log.oplog: has no ops"
done

# Rules that make one file of two.
for command in "prepare job.oplog --root root2" "replay job.oplog --root empty --pace afap --read-only"; do
    # shellcheck disable=SC2086
    mistake 2 "would place two recorded files at x: /data/in0 and /data/in1" "$REPRISE" $command --map /data/in0=x --map /data/in1=x
done

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
printf '{"storage_model":1}' >storage.json
for command in "replay job.oplog --root root --pace afap" "prepare job.oplog --root root" "predict job.oplog --storage storage.json" "info job.oplog" \
    "dump job.oplog" "export job.oplog --to csv -o x.csv"; do
    # shellcheck disable=SC2086
    mistake 2 "--not leaves no file of job.oplog" "$REPRISE" $command --not all
    # shellcheck disable=SC2086
    mistake 2 "--not leaves no file of job.oplog" "$REPRISE" $command --not dataset,cache,checkpoint,log,/data/out
    # shellcheck disable=SC2086
    mistake 2 "--only and --not leave no file of job.oplog" "$REPRISE" $command --only dataset --not /data/
done
run 0 "$REPRISE" dump job.oplog --not all --allow-empty
mistake 2 "--keep /dta matches nothing in the log; did you mean /data?" "$REPRISE" anonymize job.oplog -o y.oplog --keep /dta
mistake 2 "--keep /data/in matches nothing in the log; did you mean /data/in0, /data/in1, /data/in2?" \
    "$REPRISE" anonymize job.oplog -o y.oplog --keep /data/in3 --keep /data/in
run 0 "$REPRISE" anonymize job.oplog -o kept.oplog --keep /data/ --keep /else/x --allow-empty
mistake 2 "--role '/dta=checkpoint' matches no file of the recording; did you mean /data?" \
    "$REPRISE" import job.log -o y.oplog --role /dta=checkpoint
mistake 2 "--role '*.pt=checkpoint' matches no file" "$REPRISE" import job.log -o y.oplog --role /data=dataset --role '*.pt=checkpoint'
[[ ! -e y.oplog && ! -e y.oplog.partial ]] || fail "a refused command left $(echo y.oplog*)"
run 0 "$REPRISE" import job.log -o roles.oplog --role '*.pt=checkpoint' --role '/data/in?=checkpoint' --allow-empty
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
echo '{}' >storage.json  # outputs are checked before the model is read
mkfifo pipe
for command in "predict job.oplog --storage storage.json" "replay job.oplog --root root --pace afap" "calibrate --storage ." "calibrate"; do
    # shellcheck disable=SC2086
    mistake 2 "there exists" "$REPRISE" $command -o there
    # shellcheck disable=SC2086
    mistake 4 "no/such is not a directory" "$REPRISE" $command -o no/such/x
    # shellcheck disable=SC2086
    mistake 4 "no/such is not a directory" "$REPRISE" $command --json=no/such/x
    # shellcheck disable=SC2086
    mistake 2 "there exists" "$REPRISE" $command --json=there
done
for command in "import job.log" "anonymize job.oplog" "replay job.oplog --root root --runs 2" "predict job.oplog --storage storage.json" \
    "graft job.oplog storage.json" "capture"; do
    # shellcheck disable=SC2086
    mistake 2 "an op log cannot be written to standard output" "$REPRISE" $command -o -
    # shellcheck disable=SC2086
    mistake 2 "-o names no file" "$REPRISE" $command -o ""
    # shellcheck disable=SC2086
    [[ $command == *--runs* || $command == capture ]] || mistake 2 "pipe is not a regular file" "$REPRISE" $command -f -o pipe
done
mistake 2 "pipe is not a regular file" "$REPRISE" capture -f -o pipe touch ran
[[ ! -e ran ]] || fail "the job ran although the output is refused"
mistake 4 "no/such is not a directory" "$REPRISE" import job.log -o no/such/x
[[ -p pipe && ! -e ./- && ! -e .raw && ! -e .partial ]] || fail "a refused output left $(ls -A)"
echo precious >run.2.oplog
mistake 2 "run.2.oplog exists" "$REPRISE" replay job.oplog --root root --pace afap --runs 2 -o run.oplog
mistake 2 "run.2.oplog exists" "$REPRISE" replay job.oplog --root root --pace afap --until-stable 1s -o run.oplog
equal "$(cat run.2.oplog)" precious
cp job.oplog job.1.oplog
mistake 2 "job.1.oplog of -o job.oplog would overwrite job.1.oplog" "$REPRISE" replay job.1.oplog --root root --pace afap --runs 2 -f -o job.oplog
for name in .reprise-prepared data/in3 data/new; do
    mistake 2 "-o root/$name is in the replay root root" "$REPRISE" replay job.oplog --root root --pace afap -f -o "root/$name"
    mistake 2 "--json=root/$name is in the replay root root" "$REPRISE" replay job.oplog --root root --pace afap -f --json="root/$name"
done
run 0 "$REPRISE" replay job.oplog --root root --pace afap -f -o there --json=there.json
echo precious >there
mistake 2 "-o job.oplog would overwrite job.oplog" "$REPRISE" dump -f job.oplog -o job.oplog
mistake 2 "there/ cannot be made: there is a file of that name" "$REPRISE" export job.oplog --to fio -o there/
equal "$(cat there)" precious
mistake 2 "the output is a directory: empty" "$REPRISE" export job.oplog --to csv -o empty
run 0 "$REPRISE" export job.oplog --to fio -o fio/
mistake 2 "fio/replay.fio exists" "$REPRISE" export job.oplog --to fio -o fio/
run 0 "$REPRISE" export -f job.oplog --to fio -o fio/
run 0 "$REPRISE" dump -f job.oplog -o there
run 0 "$REPRISE" dump job.oplog -o /dev/null

# strace logs whose times say nothing.
line() { echo "$1 openat(AT_FDCWD, \"/data/x\", O_RDONLY) = 3 <0.000010>"; }
for stamp in 10:00:00 1795198645; do
    line $stamp >coarse.strace
    mistake 3 "coarse.strace:1: time stamps are whole seconds (strace -t), too coarse for a replay" "$REPRISE" import coarse.strace -o y.oplog
    contains "$err" "strace -f -ttt"
done
{ line 1795198645.100000; line 1795198645.300000; line 1795198645.200000; line 1795198645.299000; line 1795198645.298000; } >back.strace
run 0 "$REPRISE" import back.strace -o back.oplog
grep -Eq 'note +2 +clock_set_back .* the first by 100 ms at back.strace:3$' "$out" || fail "no note on the clock: $(cat "$out")"
line 1795198644.100000 >>back.strace
mistake 3 "back.strace:6: the wall clock was set back by 1.20 s" "$REPRISE" import back.strace -o y.oplog
{ line 23:59:59.900000; line 00:00:00.100000; } >midnight.strace
run 0 "$REPRISE" import midnight.strace -o midnight.oplog
lacks "$out" "clock_set_back"
for text in head tail; do
    seq -f 'epoch %g' 100 >mixed.txt
    [[ $text == head ]] && { line 1795198645.100000; cat mixed.txt; } >mixed.strace
    [[ $text == tail ]] && { cat mixed.txt; line 1795198645.100000; } >mixed.strace
    mistake 3 "mixed.strace: is text in no format that can be imported" "$REPRISE" import mixed.strace -o y.oplog
    contains "$err" "is strace's; to import it all the same: --from strace"
    run 0 "$REPRISE" import -f mixed.strace -o mixed.oplog --from strace
done
mistake 3 "empty: is a directory, not a storage model" "$REPRISE" predict job.oplog --storage empty
contains "$err" "reprise calibrate --storage empty -o model.json"

# Service times of a recording in place of a model.
printf '[reads]\nrw=read\nbs=4k\nsize=64k\n' >made.ini
run 0 "$REPRISE" generate -q made.ini -o made.oplog
printf 'fio version 2 iolog\n/else/x add\n/else/x open\n/else/x read 0 4096\n/else/x close\n' >untimed.log
run 0 "$REPRISE" import untimed.log -o untimed.oplog
for service in recorded made.oplog; do
    mistake 2 "made.oplog was not recorded: its service times are computed" "$REPRISE" predict made.oplog --service "$service"
done
for service in recorded untimed.oplog; do
    mistake 2 "untimed.oplog has no service times: its calls take no time" "$REPRISE" predict untimed.oplog --service "$service"
done
for option in "--storage storage.json" "--sweep read=10M" "--memory 1G" "--ratio 2" "--direct" "--sync-writes" "--mmap-as-read" \
    "--read-as-mmap" "--prefetch" "--read-ahead 1M" "--cache warm" "--page-cache lru"; do
    # shellcheck disable=SC2086
    mistake 2 "--service and ${option%% *}: recorded service times are of the" "$REPRISE" predict job.oplog --service recorded $option
done
mistake 3 "none.oplog: cannot be opened: No such file or directory" "$REPRISE" predict made.oplog --service none.oplog
cp "$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog" timed.oplog
mistake 2 "-o timed.oplog would overwrite --service timed.oplog" "$REPRISE" predict made.oplog --service timed.oplog -o timed.oplog -f
mistake 2 "--storage is required" "$REPRISE" predict job.oplog

mistake 2 "./job.log is given twice" "$REPRISE" import job.log ./job.log -o y.oplog
mkdir logs
cp midnight.strace logs
mistake 2 "logs/midnight.strace is given twice" "$REPRISE" import logs logs/midnight.strace -o y.oplog

# A profile that is none, and sizes that are too small to be meant.
echo '{"a": 1}' >bad.json
mistake 3 "bad.json: is neither a profile nor an op log" "$REPRISE" graft job.oplog bad.json -o whole.oplog
mistake 2 "--ring '3' is 3 bytes" "$REPRISE" capture --ring 3 -o c.oplog -- /bin/true
contains "$err" "--ring 3M"
mistake 2 "--ring '65536' is 65,536 bytes" "$REPRISE" capture --ring 65536 -o c.oplog -- /bin/true
mistake 2 "-o is required" "$REPRISE" capture true -o c.oplog
contains "$err" "before the command"
mistake 2 "--ring '1K' is 1,024 bytes" "$REPRISE" capture --ring 1K -o c.oplog -- /bin/true

# Numbers out of range.
for number in -2 0 1001 4294967297 1.5 many ''; do
    mistake 2 "--runs is '$number', expected a whole number from 1 to 1000" "$REPRISE" replay job.oplog --root root --runs "$number"
    mistake 2 "--runs is '$number', expected a whole number from 1 to 1000" "$REPRISE" capture -o c.oplog --runs "$number" /bin/true
done
mistake 2 "--jobs is '-1', expected a whole number from 1 to 1024" "$REPRISE" prepare job.oplog --root root -j -1
mistake 2 "--pid is '-7', expected a whole number from 1 to 4194304" "$REPRISE" capture -o c.oplog --pid -7
mistake 2 "--examples is '-1', expected a whole number from 0 to 1000000" "$REPRISE" compare job.oplog job.oplog --examples -1
run 0 "$REPRISE" compare job.oplog job.oplog --examples 0
for number in 0 -1 8193; do
    mistake 2 "--cpus is '$number', expected a whole number from 1 to 8192" "$REPRISE" predict job.oplog --storage storage.json --cpus "$number"
done
for number in 1e9 0 -1 0.0001 1e-400 nan inf 2x ''; do
    mistake 2 "--time-scale is '$number', expected a number from 0.001 to 1000" "$REPRISE" replay job.oplog --root root --time-scale "$number"
    mistake 2 "--gpu-speed is '$number', expected a number from 0.001 to 1000" "$REPRISE" predict job.oplog --storage storage.json --gpu-speed "$number"
    mistake 2 "--cpu-speed is '$number', expected auto or a number from 0.001 to 1000" "$REPRISE" replay job.oplog --root root --cpu-speed "$number"
done
mistake 2 "--ring is '999G', expected a size from 4K to 1G" "$REPRISE" capture --ring 999G -o c.oplog /bin/true
for share in 200% 100.1% 1.5 1e300; do
    mistake 2 "--tolerance-results is '$share', expected a number of ops, or a share from 0% to 100%" \
        "$REPRISE" replay job.oplog --root root --tolerance-results "$share"
done
run 0 "$REPRISE" replay job.oplog --root root --pace afap --tolerance-results 100%

# What-if questions: said first, and refused where they would change nothing.
for option in "--gpu-speed 2" "--gpu-model 250ms"; do
    for command in "replay job.oplog --root root" "predict job.oplog --storage storage.json"; do
        [[ $command == predict* && $option == --gpu-model* ]] && continue
        # shellcheck disable=SC2086
        mistake 2 "${option% *}: job.oplog has no accelerator work" "$REPRISE" $command $option
    done
done
said() { head -n 1 "$out" | grep -qxF -- "$1" || { fail "the first line is not '$1':"; head -n 3 "$out"; }; }
run 0 "$REPRISE" replay job.oplog --root root --pace timed --time-scale 0.5 -o half.oplog --json=half.json
said "what-if: --time-scale 0.5; not the job as recorded"
# What a pace does not keep cannot be changed.
mistake 2 "--time-scale with --pace afap, which keeps no recorded time" "$REPRISE" replay job.oplog --root root --pace afap --time-scale 0.5
mistake 2 "--delay with --pace afap, which computes nothing" "$REPRISE" replay job.oplog --root root --pace afap --delay spin
mistake 2 "--gpu-speed requires --pace causal" "$REPRISE" replay job.oplog --root root --pace afap --gpu-speed 2
run 0 "$REPRISE" replay job.oplog --root root --pace afap --time-scale 1 --delay auto
contains half.json '"what_if": "--time-scale 0.5"'
run 0 "$REPRISE" replay job.oplog --root root --pace timed --time-scale 0.5 --runs 2
said "what-if: --time-scale 0.5; not the job as recorded"
run 1 "$REPRISE" replay job.oplog --root empty --read-only --pace timed --time-scale 0.5
grep -qxF "what-if: --time-scale 0.5 --read-only; not the job as recorded" "$out" || { fail "no what-if after the reason"; head -n 4 "$out"; }
run 0 "$REPRISE" replay job.oplog --root root --pace afap --read-only -o reads.oplog
said "what-if: --read-only; not the job as recorded"
run 0 "$REPRISE" compare job.oplog reads.oplog
said "what-if: --read-only; not the job as recorded"
run 0 "$REPRISE" compare job.oplog half.oplog
said "what-if: --time-scale 0.5; not the job as recorded"
run 0 "$REPRISE" compare half.oplog job.oplog
said "what-if: A --time-scale 0.5, B none; not the job as recorded"
run 0 "$REPRISE" prepare job.oplog --root whole --only all
run 0 "$REPRISE" replay job.oplog --root whole --pace afap -v
contains "$out" "The root was prepared with another --only or --not: give replay the same."
run 0 "$REPRISE" replay job.oplog --root whole --pace afap --only all -v
lacks "$out" "another --only"
run 0 "$REPRISE" prepare job.oplog --root two --gpus 2
run 0 "$REPRISE" replay job.oplog --root two --pace afap --gpus 2 -v
said "what-if: --gpus 2; not the job as recorded"
contains "$out" "no step of the 2 copies waits for the others'"
run 0 "$REPRISE" replay job.oplog --root root --pace afap
lacks "$out" "what-if"
run 0 "$REPRISE" replay job.oplog --root root --pace afap --only dataset --json=only.json
said "what-if: --only dataset; not the job as recorded"
contains only.json '"what_if": "--only dataset"'

# A time that says little about the storage: data that the filter takes for a program's, waits of unknown cause.
{
    echo "fio version 3 iolog"
    echo "0 /data/in add"
    echo "0 /data/in open"
    echo "0 /data/in read 0 4096"
    pack=/home/me/.git/pack
    echo "0 $pack add"
    echo "0 $pack open"
    for i in $(seq 0 63); do echo "$((i * 100)) $pack read $((i * 65536)) 65536"; done
    echo "7000 $pack close"
} >repository.log
run 0 "$REPRISE" import -q repository.log -o repository.oplog
run 0 "$REPRISE" prepare -q repository.oplog --root repository
run 1 "$REPRISE" replay repository.oplog --root repository
said "NOT MEASURED: 4.00 MiB of the job's 4.00 MiB are left out as program or system files; select with --only PATH."
contains "$out" "trust       POOR  4.00 MiB"
run 0 "$REPRISE" prepare -q repository.oplog --root repository2 --only /
run 0 "$REPRISE" replay repository.oplog --root repository2 --only /
lacks "$out" "NOT MEASURED"
cat >waits.strace <<'END'
10 1795198645.000000 openat(AT_FDCWD, "/data/a", O_RDONLY) = 3 <0.000020>
10 1795198645.000100 read(3, "", 4096) = 4096 <0.000020>
10 1795198645.000200 recvfrom(5, "", 4096, 0, NULL, NULL) = 1 <0.300000>
10 1795198645.300400 poll([{fd=5, events=POLLIN}], 1, -1) = 1 ([{fd=5, revents=POLLIN}]) <0.300000>
10 1795198645.600600 close(3) = 0 <0.000010>
10 1795198645.600700 +++ exited with 0 +++
END
run 0 "$REPRISE" import -q waits.strace -o waits.oplog
run 0 "$REPRISE" prepare -q waits.oplog --root waits
run 1 "$REPRISE" replay waits.oplog --root waits
head -n 1 "$out" | grep -qE '^NOT MEASURED: [0-9]+ ms of the 60. ms are recorded waits of unknown cause, as long on any storage\.$' ||
    { fail "waits of unknown cause"; head -n 3 "$out"; }
storage_model waits.json
run 1 "$REPRISE" predict waits.oplog --storage waits.json -o predicted-waits.oplog
waits="600 ms of the 601 ms are recorded waits of unknown cause, as long on any storage"
said "NOT MEASURED: $waits."
contains "$out" "trust POOR: $waits"
lacks "$out" "95 %"
run 1 "$REPRISE" predict waits.oplog --storage waits.json --json
contains "$out" "\"not_measured\": \"$waits\""
run 0 "$REPRISE" info predicted-waits.oplog --json
contains "$out" "$waits"

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
# A log without a single I/O op is nothing to replay.
printf '[t]\nformat=none\nsteps=3\ncompute=1ms\n' >compute.ini
run 0 "$REPRISE" generate -q compute.ini -o compute.oplog
mistake 1 "NOT THE SAME JOB: There was nothing to replay: the log has no I/O op." "$REPRISE" replay compute.oplog --root empty
lacks "$out" "job         SAME"
echo "fio version 3 iolog" >none.log
mistake 3 "none.log: has no operation that could be replayed: no log was written" "$REPRISE" import -q none.log -o none.oplog
[[ ! -e none.oplog ]] || fail "a log of nothing was written"
run 2 "$REPRISE" replay job.oplog --root root -o job.oplog
contains "$err" "-o job.oplog would overwrite job.oplog"

# A tolerance that covers everything does not make it the same.
mkdir nothing-there
run 0 "$REPRISE" replay job.oplog --root nothing-there --pace afap --read-only --tolerance-results 100%
contains "$out" "32 of 33 differ (--tolerance-results 100%): 0 I/O ops as recorded + 32 differ + 1 left out"
lacks "$out" "SAME"
all_none=(--tolerance ops=none --tolerance bytes=none --tolerance results=none --tolerance order=none --tolerance arguments=none)
mistake 0 "33 of 33 differ (--tolerance): 0 I/O ops" "$REPRISE" compare job.oplog other.oplog "${all_none[@]}"
lacks "$out" "SAME"

# A check of what neither log has.
for check in au=5% au_mlperf=1% stall=10% stall=0; do
    mistake 2 "--tolerance ${check%=*}: neither log has accelerators" "$REPRISE" compare job.oplog job.oplog --tolerance "$check"
done
run 0 "$REPRISE" compare job.oplog job.oplog --tolerance au=none

# One recording, given as two.
cp job.oplog copy.oplog
mistake 2 "job.oplog is the same recording as one before" "$REPRISE" replay job.oplog job.oplog --root root
mistake 2 "copy.oplog is the same recording as job.oplog" "$REPRISE" prepare job.oplog copy.oplog --root root

# A cache regime that there is not.
mistake 2 "'hot'" "$REPRISE" replay job.oplog --root root --cache hot
for regime in cold warm recorded as-is; do contains "$err" "$regime"; done

# A link that somebody planted where a scratch file will be is replaced, not followed.
echo precious >precious
for name in again.oplog.partial x.csv.partial; do ln -s precious "$name"; done
run 0 "$REPRISE" import job.log -o again.oplog
run 0 "$REPRISE" export job.oplog --to csv -o x.csv
equal "$(cat precious)" precious

# Another file of that name is left as it is; what a killed reprise left there is replaced.
echo precious >y.oplog.partial
mistake 2 "y.oplog.partial exists and is no unfinished op log" "$REPRISE" import job.log -o y.oplog
equal "$(cat y.oplog.partial)" precious
head -c 100 job.oplog >y.oplog.partial
run 0 "$REPRISE" import job.log -o y.oplog
[[ ! -e y.oplog.partial ]] || fail "a .partial file is left"
rm y.oplog

# A capture that could not begin is not in the way of the corrected command.
if can_record; then
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
mistake 4 "z.oplog: cannot be written: file size limit (ulimit -f)" limited "-f 1" "$REPRISE" import names.log -o z.oplog
contains "$err" "ulimit -f unlimited"
[[ ! -e z.oplog.partial ]] || fail "a .partial file is left"
mistake 4 "file size limit (ulimit -f)" limited "-f 1" "$REPRISE" prepare -q job.oplog --root small
mistake 4 "cannot make the bytes that the replay writes: file size limit (ulimit -f)" \
    limited "-f 1" "$REPRISE" replay -q job.oplog --root root --pace afap
# The sanitizers need descriptors themselves, to tell an object from none.
if [[ -z ${REPRISE_SANITIZE:-} ]]; then
    mistake 4 "limit of open descriptors (ulimit -n 8)" limited "-n 8" "$REPRISE" prepare -q job.oplog --root few
    mistake 4 "limit of open descriptors (ulimit -n 10)" limited "-n 10" "$REPRISE" prepare -q job.oplog --root few
    if can_record; then
        mistake 4 "limit of open descriptors (ulimit -n 12) is below" limited "-n 12" "$REPRISE" capture -f -o c.oplog -- /bin/true
    fi
fi
mistake 4 "the stack limit (ulimit -s) is 64 KiB" limited "-s 64" "$REPRISE" replay job.oplog --root root --pace afap
run 0 limited "-S -s 64" "$REPRISE" replay job.oplog --root root --pace afap
# What to do stands on the same line, without a written-out line break.
printf '%s\n' "fio version 3 iolog" "0 /data/huge add" "0 /data/huge open" "1 /data/huge read 0 2147479552" "5 /data/huge close" >huge.log
if [[ -z ${REPRISE_SANITIZE:-} ]]; then
    run 0 "$REPRISE" import -q huge.log -o huge.oplog
    run 0 "$REPRISE" prepare -q huge.oplog --root huge --content sparse
    run 4 limited "-v 300000" "$REPRISE" replay huge.oplog --root huge --pace afap --json=huge.json
    contains "$out" "INCOMPLETE: interrupted: no memory for a buffer of 2147479552 bytes; free memory, or raise its limit (ulimit -v)"
    lacks huge.json 'bytes\n'
fi

# The head of a log, without any op.
head -c 300 job.oplog >none.oplog
no_ops() {
    mistakes=$((mistakes + 1))
    run 3 "$@"
    contains "$err" "none.oplog: the log has no ops, and so no service times"
}
no_ops "$REPRISE" predict none.oplog --service recorded --recover
no_ops "$REPRISE" predict job.oplog --service none.oplog --recover

# A key that is a directory, or nothing.
: >nothing
mistake 3 ": cannot read the key" "$REPRISE" anonymize job.oplog -o y.oplog --key-file empty
mistake 3 "nothing: cannot read the key" "$REPRISE" anonymize job.oplog -o y.oplog --key-file nothing

[[ $mistakes -ge 40 ]] || fail "only $mistakes mistakes were made"
finish

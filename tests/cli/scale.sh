#!/usr/bin/env bash
# A recorded job on a larger data set: info --scaling, scale, prepare and replay with --scale, and what is refused.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
log=$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog

run 0 "$REPRISE" info --scaling "$log"
contains "$out" "*.jpg"
contains "$out" "2,000 reads of samples"
contains "$out" "which waits for what is read"
run 0 "$REPRISE" info --scaling --json "$log"
json() { python3 -c 'import json,sys; v=json.load(open(sys.argv[1]))
for k in sys.argv[2].split("."): v=v[int(k) if k.isdigit() else k]
print(v)' "$1" "$2"; }
equal "$(json "$out" scaling.files.0.class)" "sample"
equal "$(json "$out" scaling.files.0.files)" "2000"
equal "$(json "$out" scaling.epochs.0)" "2000"
equal "$(json "$out" scaling.obstacle)" "None"
run 2 "$REPRISE" info --scale-as '/data=fixed' "$log"
contains "$err" "--scale-as requires --scaling"
run 0 "$REPRISE" info --scaling --scale-as '/data=fixed' "$log"
contains "$out" "cannot be scaled"

run 0 "$REPRISE" scale "$log" --scale 2 -o "$tmp/twice.oplog"
contains "$out" "files more)"
run 2 "$REPRISE" scale "$log" --scale 2 -o "$tmp/twice.oplog"
contains "$err" "exists"
run 2 "$REPRISE" scale "$log" -o "$tmp/same.oplog"
contains "$err" "--scale or --epochs is required"
run 2 "$REPRISE" scale "$log" --scale 1 -o "$tmp/same.oplog"
contains "$err" "the log would be the same: --scale is 1"
run 3 "$REPRISE" info /etc/passwd
contains "$err" "/etc/passwd: this is not an op log"
for factor in 0 -1 x 5000; do
    run 2 "$REPRISE" scale "$log" --scale "$factor" -o "$tmp/no.oplog"
    contains "$err" "expected a number from 0.01 to 1000"
done
run 3 "$REPRISE" scale "$log" --scale 2 --scale-as '/data=fixed' -o "$tmp/no.oplog"
contains "$err" "cannot be scaled"
run 2 "$REPRISE" scale "$log" --scale 2 --scale-as '/nothing/*=fixed' -o "$tmp/no.oplog"
contains "$err" "--scale-as '/nothing/*=fixed' matches no file of the recording"
run 3 "$REPRISE" scale "$log" --epochs 2 -o "$tmp/no.oplog"
contains "$err" "--epochs requires two"
[[ ! -e $tmp/no.oplog && ! -e $tmp/no.oplog.partial ]] || fail "a log was left"
run 0 "$REPRISE" info --scaling --json "$tmp/twice.oplog"
reads=$(json "$out" scaling.epochs.0)
((reads >= 3940 && reads <= 4060)) || fail "$reads reads of samples, expected about 4,000"

# The same options of prepare and replay.
run 0 "$REPRISE" prepare "$log" --root "$tmp/root" --scale 0.25 --content sparse
files=$(find "$tmp/root" -name '*.jpg' | wc -l)
((files >= 464 && files <= 536)) || fail "$files files, expected 500 but for a batch of each loader"
run 4 "$REPRISE" replay "$log" --root "$tmp/root" --pace afap
contains "$err" "was prepared for $log --scale 0.25, not for $log"
run 4 "$REPRISE" replay "$log" --root "$tmp/root" --pace afap --scale 0.25 --seed 2
contains "$err" "was prepared for $log --scale 0.25, not for $log --scale 0.25 --seed 2"
# The advice is a command that works; what it says of maps and of the state of the root, too.
cp "$log" "$tmp/my job.oplog"
cd "$tmp" || exit 1
run 0 "$REPRISE" prepare "my job.oplog" --root "my root" --map /data=. --content sparse --scale 0.1
run 4 "$REPRISE" replay "my job.oplog" --root "my root" --pace afap --scale 0.2 --seed 2 --scale-as '/etc/*=fixed'
advice=$(sed -n 's/.*prepare it for this one: reprise //p' "$err")
equal "$advice" "prepare 'my job.oplog' --scale 0.2 --seed 2 --scale-as '/etc/*=fixed' --root 'my root' --map /data=."
eval "run 0 '$REPRISE' $advice -q"
"$REPRISE" replay "my job.oplog" --root "my root" --pace afap --scale 0.2 --seed 2 --scale-as '/etc/*=fixed' \
    --json="$tmp/mine.json" >"$out" 2>"$err"
equal "$(json "$tmp/mine.json" same_job)" "True"
run 4 "$REPRISE" replay "my job.oplog" --root "my root" --pace afap
advice=$(sed -n 's/.*prepare it for this one: reprise //p' "$err")
contains "$err" "prepare 'my job.oplog' --root 'my root' --map /data=. --reset"
eval "run 0 '$REPRISE' $advice -q"
"$REPRISE" replay "$log" --root "$tmp/root" --pace afap --scale 0.25 --json="$tmp/run.json" >"$out" 2>"$err"
contains "$out" "what-if: --scale 0.25"
contains "$out" "(computed, with waits: "
lacks "$out" "recorded)"
equal "$(json "$tmp/run.json" same_job)" "True"
equal "$(json "$tmp/run.json" scale)" "0.25"
run 2 "$REPRISE" replay "$log" --root "$tmp/root" --seed 2
contains "$err" "--seed requires --scale"
# A log that `scale` left is none of a job that ran, either.
run 0 "$REPRISE" scale "$log" --scale 0.25 -o "$tmp/quarter.oplog"
rc=0
"$REPRISE" replay "$tmp/quarter.oplog" --engine null --pace afap --json="$tmp/quarter.json" >"$out" 2>"$err" || rc=$?
contains "$out" "what-if: a log made with --scale 0.25 --seed 1; not the job as recorded"
equal "$(json "$tmp/quarter.json" verdict.what_if)" "a log made with --scale 0.25 --seed 1"
equal "$(json "$tmp/quarter.json" recorded_is_computed)" "True"
mkdir "$tmp/scratch"
TMPDIR=$tmp/scratch "$REPRISE" replay "$log" --root "$tmp/root" --pace afap --scale 0.25 >"$out" 2>"$err"
contains "$out" "what-if: --scale 0.25"
equal "$(ls -A "$tmp/scratch")" ""

# Epochs of two loaders that take turns: more of them are whole ones, of the files that there are. Ones shorter than what
# the loaders have in flight cannot be made, which the first line, the exit code, --json and the trust of a replay say.
cat >job.ini <<'END'
[train]
format=npz
samples=120
sample_size=10k
batch=4
loader_workers=2
prefetch=2
shuffle=full
epochs=2
compute=10ms
END
run 0 "$REPRISE" generate job.ini -o turns.oplog
run 0 "$REPRISE" scale turns.oplog --scale 1 --epochs 6 -o turns6.oplog
lacks "$out" "NOT AS ASKED"
contains "$out" "(0 files more), reads of samples in each epoch: 120, 120, 120, 120, 120, 120"
run 1 "$REPRISE" scale turns.oplog --scale 0.02 -o short.oplog
equal "$(head -n 1 "$out" | cut -c 1-20)" "NOT AS ASKED: epoch "
contains "$out" " reads of samples where 2 were asked"
[[ -s short.oplog ]] || fail "no log was written"
run 1 "$REPRISE" scale -q -f turns.oplog --scale 0.02 -o short.oplog
contains "$err" "short.oplog: NOT AS ASKED: epoch "
run 1 "$REPRISE" scale -f turns.oplog --scale 0.02 -o short.oplog --json
equal "$(json "$out" as_asked)" "False"
equal "$(json "$out" epochs.1.asked)" "2"
(($(json "$out" epochs.1.made) > 2)) || fail "no more reads than asked for"
run 0 "$REPRISE" scale -f turns.oplog --scale 2 -o short.oplog --json
equal "$(json "$out" as_asked)" "True"
equal "$(json "$out" epochs)" "[{'asked': 240, 'made': 240}, {'asked': 240, 'made': 240}]"
run 0 "$REPRISE" prepare -q turns.oplog --scale 0.02 --root short
run 1 "$REPRISE" replay turns.oplog --root short --pace afap --scale 0.02
contains "$out" "NOT MEASURED: an epoch of the scaled set has "
contains "$out" "trust       POOR  an epoch of the scaled set has "

# No space for it: refused before anything is written.
mkdir "$tmp/small"
if unshare -m mount -t tmpfs none "$tmp/small" 2>/dev/null; then
    # shellcheck disable=SC2016 # for the inner shell
    run 4 unshare -m bash -c 'mount -t tmpfs -o size=150m none "$2/small" && "$0" prepare "$1" --root "$2/small/root" --dry-run &&
        ! "$0" prepare "$1" --root "$2/small/root" --scale 2 2>"$2/why" && ls "$2/small/root" 2>/dev/null; exit 4' \
        "$REPRISE" "$log" "$tmp"
    contains "$out" "dry run"
    contains "$tmp/why" "does not fit"
    lacks "$out" ".reprise-prepared"
    # Nor are there inodes for what the replay makes.
    for i in $(seq 1 100); do
        printf '100 1700000000.%06d openat(AT_FDCWD, "/out/%d", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3 <0.000010>\n' $((i * 100)) "$i"
        printf '100 1700000000.%06d write(3, "x"..., 1) = 1 <0.000010>\n' $((i * 100 + 20))
        printf '100 1700000000.%06d close(3) = 0 <0.000010>\n' $((i * 100 + 40))
    done >many.strace
    run 0 "$REPRISE" import -q many.strace -o many.oplog
    # shellcheck disable=SC2016 # for the inner shell
    run 4 unshare -m bash -c 'mount -t tmpfs -o nr_inodes=60 none "$2/small" && "$0" prepare "$1" --root "$2/small/root"' \
        "$REPRISE" "$PWD/many.oplog" "$tmp"
    contains "$err" "it makes 100 files beside the"
fi
finish

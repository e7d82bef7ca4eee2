#!/usr/bin/env bash
# Every command that README, docs/, CONTRIBUTING and `--help` show is run, in the order of its page, in a folder that
# holds what such a page begins with: a job to record, an op log. A page's placeholders become real things: the PID a
# running job's, /mnt/new a folder of its own. What takes minutes or is run by CI itself must exist, no more.
# plain builds only
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"

# The pages name files in places that belong to the machine: they are shown to the commands in a mount namespace.
if [[ ${REPRISE_DOCS_INSIDE:-} != yes ]]; then
    [[ $(id -u) == 0 ]] || skip "needs root, to mount over /mnt in a namespace of its own"
    unshare --mount true 2>/dev/null || skip "mount namespaces are not allowed here"
    REPRISE_DOCS_INSIDE=yes exec unshare --mount --propagation private bash "$0" "$@"
fi
mount -t tmpfs -o mode=755 tmpfs /mnt || skip "no tmpfs can be mounted here"
group=
trap 'umount /mnt; [[ -z $group ]] || rmdir "$group" 2>/dev/null; rm -rf "$tmp"' EXIT

bin=$tmp/bin
mkdir -p "$bin" "$tmp/home"
ln -s "$REPRISE" "$bin/reprise"
ln -s "$(command -v python3)" "$bin/python"
export PATH=$bin:$PATH HOME=$tmp/home

# A job like those the pages speak of: it reads its data set and marks its steps.
export PYTHONPATH=$REPRISE_SOURCE_DIR/markers/python
cat >"$tmp/train.py" <<'EOF'
import os, sys, time
import reprise
folder = next((one for one in sys.argv[1:] if os.path.isdir(one)), "images")
for turn in range(3):
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as sample:
            sample.read()
    reprise.begin("accelerator", turn)
    time.sleep(0.01)
    reprise.end("accelerator", turn)
EOF

bpf=yes
can_record || bpf=no

# A page begins in a folder with these.
fresh() {
    rm -rf "$tmp/page" /mnt/new
    mkdir -p "$tmp/page/images" /mnt/new
    cd "$tmp/page" || exit 1
    for i in 1 2 3 4; do head -c 20000 /dev/urandom >"images/$i.jpg"; done
    cp "$tmp/train.py" train.py
    cp "$tmp/train.py" train_resnet.py
    cp "$tmp/log/job.oplog" job.oplog
    cp "$tmp/log/job.oplog" resnet.oplog
    cp "$tmp"/log/job.rank*.oplog . 2>/dev/null
    cp "$tmp/log/host.json" recorder.json
    cp "$tmp/log/model.json" model.json
    cp "$REPRISE_SOURCE_DIR/tests/fuzz/corpus/darshan/small.dxt.txt" job.dxt.txt
    printf '[train]\nformat=npz\nsamples=20\nsample_size=20k\nbatch=2\ncompute=2ms\n' >job.ini
    printf '%s\n' 'dataset: {num_files_train: 56, record_length_bytes: 9000}' 'reader: {batch_size: 7}' >unet3d_h100.yaml
    cp "$tmp/log/run.oplog" run.oplog
    [[ $1 == regress.md ]] || return
    mkdir -p /mnt/a /mnt/b
    printf '[suite]\nwarm-up = 0\n[job job]\nlog = job.oplog\nreplay = --pace afap\n' >suite.ini
    for name in old new; do "$REPRISE" replay -q job.oplog --engine null --pace afap --runs 2 -o $name.oplog >/dev/null 2>&1; done
}

# The command of one line, its placeholders replaced.
real_command() {
    local line=$1 groups=/sys/fs/cgroup/unified
    [[ -d $groups ]] || groups=/sys/fs/cgroup
    line=${line//\/sys\/fs\/cgroup\/.../$groups/reprise-docs}
    line=${line//--pid 4711/--pid $job_pid}
    line=${line//--storage DIR/--storage /mnt/new}
    line=${line// DIR/ /mnt/new}
    line=${line// COMMAND/ python3 train.py images}
    line=${line//python train.py/python train.py images}
    line=${line//\/tmp\/new//mnt/new}
    line=${line//--map \/data=/--map $tmp/log=}
    line=${line//examples\/jobs/$REPRISE_SOURCE_DIR/examples/jobs}
    line=${line//examples\/network.json/$REPRISE_SOURCE_DIR/examples/network.json}
    line=${line//regress suite.ini/regress suite.ini --runs 2}
    line=${line//--runs 2 --target ext4=\/mnt\/a --target xfs=\/mnt\/b --runs 10/--runs 2 --target ext4=/mnt/a --target xfs=/mnt/b}
    line=${line//--until-stable 10min/--until-stable 2s}
    # The job of this test reads too few files for that.
    [[ $line != *" --scal"* ]] || line=${line//job.oplog/$REPRISE_SOURCE_DIR/examples/recorded/resnet.oplog}
    line=${line//--scale 4/--scale 0.25}
    # Nothing ends the recording of a container but Ctrl-C.
    [[ $line != *--cgroup* ]] || line="timeout --preserve-status -s INT 6 $line"
    printf '%s' "$line"
}

seen=0 only_looked_at=0
declare -A skipped=() measured=()

# page_line PAGE COMMAND
page_line() {
    local page=$1 shown=$2 command first rc=0 out_file
    job_pid=
    case $shown in
        *--ratio\ * | *--memory\ * | *--io-limit\ *)
            skipped["needs a disk, and more data (limits.sh runs it): $shown"]=1; return ;;
        *--gpu\ *) skipped["no accelerator: $shown"]=1; return ;;
        *--gpu-model* | *--gpu-speed* | *--compare\ job.oplog*)
            [[ $bpf == yes ]] || { skipped["needs a log of reprise capture: $shown"]=1; return; } ;;
        *capture*--check*) ;;
        *"merge job.rank"*) [[ $bpf == yes ]] || { skipped["this machine cannot record: $shown"]=1; return; } ;;
        *capture*) [[ $bpf == yes ]] || { skipped["this machine cannot record: $shown"]=1; return; } ;;
    esac
    if [[ $shown == *"--pid 4711"* ]]; then
        (sleep 3; python3 train.py images) &
        job_pid=$!
    fi
    command=$(real_command "$shown")
    first=${shown%% *}
    if [[ $first != reprise && $first != strace ]]; then
        # A script or a build command: it is there.
        only_looked_at=$((only_looked_at + 1))
        [[ $first != */* || -x $REPRISE_SOURCE_DIR/$first ]] || fail "$page: $shown: there is no $first"
        return
    fi
    if [[ $command == "reprise calibrate --storage "* && -n ${measured["$command"]:-} ]]; then
        only_looked_at=$((only_looked_at + 1)) # takes 15 s, and was run on another page
        return
    fi
    measured["$command"]=1
    # What the page writes again was written by the fixture, or by a line before.
    out_file=$(sed -n 's/.* -o \([^ ]*\).*/\1/p' <<<"$command")
    [[ -z $out_file || $command == *"--force"* ]] || rm -rf "$out_file"
    out_file=$(sed -n 's/.*--json=\([^ ]*\).*/\1/p' <<<"$command")
    [[ -z $out_file ]] || rm -f "$out_file"
    if [[ $command == *"--cgroup "* ]]; then
        group_job "$command" || { skipped["no cgroup can be made: $shown"]=1; return; }
    fi
    timeout 60 bash -c "$command" >"$out" 2>"$err" </dev/null || rc=$?
    # 1: a replay or a comparison that says it is not to be believed, as two runs on a busy machine may be.
    if [[ $rc != 0 && ! ($rc == 1 && $command =~ ^reprise\ +(replay|compare|predict|regress)) ]]; then
        fail "$page: exit code $rc: $shown"
        head -n 5 "$err"
    fi
    seen=$((seen + 1))
}

group_job() {
    group=$(sed -n 's/.*--cgroup \([^ ]*\).*/\1/p' <<<"$1")
    mkdir -p "$group" 2>/dev/null || return 1
    (echo "$BASHPID" >"$group/cgroup.procs" && sleep 3 && exec python3 train.py images) 2>/dev/null &
}

commands_of() { # FILE: "COMMAND" per line
    python3 - "$1" <<'EOF'
import re, sys
fenced, joined = False, ""
for line in open(sys.argv[1]):
    if line.startswith("```"):
        fenced = not fenced
        continue
    if not fenced and not line.startswith("    ") and not joined:
        continue
    text = re.sub(r"^[$#] ", "", line.strip())
    if joined:
        text, joined = joined + " " + text, ""
    if not re.match(r"(sudo )?(reprise|strace|cmake|ctest|\./|tests/|scripts/|examples/)[\w/.-]*( |$)", text):
        continue
    if text.endswith("\\"):
        joined = text[:-1].rstrip()
        continue
    text = re.sub(r"\s+#.*$", "", re.sub(r"^sudo ", "", text))
    if not re.match(r"reprise\S", text):  # not reprise.begin(...)
        print(text)
EOF
}

# What the pages begin with.
mkdir -p "$tmp/log/images"
cd "$tmp/log" || exit 1
for i in 1 2 3 4; do head -c 20000 /dev/urandom >"images/$i.jpg"; done
run 0 strace -f -ttt -T -yy -o job.strace python3 "$tmp/train.py" images
if [[ $bpf == yes ]]; then
    run 0 "$REPRISE" capture -q -o job.oplog -- python3 "$tmp/train.py" images
    # Recordings of one run overlap: each rank waits for the other, as jobs do.
    # shellcheck disable=SC2016
    rank=(sh -c ': >there.$OMPI_COMM_WORLD_RANK; until [ -e there.0 ] && [ -e there.1 ]; do sleep 0.1; done; exec python3 "$@"' sh "$tmp/train.py" images)
    OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$REPRISE" capture -q -o job.oplog -- "${rank[@]}" &
    OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 run 0 "$REPRISE" capture -q -o job.oplog -- "${rank[@]}"
    wait
else
    run 0 "$REPRISE" import -q job.strace -o job.oplog
fi
run 0 "$REPRISE" calibrate -q -o host.json
storage_model model.json
mkdir /mnt/new
"$REPRISE" prepare -q job.oplog --root /mnt/new >/dev/null 2>&1
"$REPRISE" replay -q job.oplog --root /mnt/new -o run.oplog >/dev/null 2>&1
[[ -s run.oplog ]] || fail "the pages' job cannot be replayed"
[[ $failures == 0 ]] || finish

pages=("$REPRISE_SOURCE_DIR"/README.md "$REPRISE_SOURCE_DIR"/CONTRIBUTING.md "$REPRISE_SOURCE_DIR"/docs/*.md)
for page in "${pages[@]}"; do
    commands_of "$page" >"$tmp/commands"
    [[ -s $tmp/commands ]] || continue
    fresh "$(basename "$page")"
    while IFS= read -r -u 9 command; do
        page_line "$(basename "$page")" "$command"
    done 9<"$tmp/commands"
done
for reason in "${!skipped[@]}"; do
    echo "not run: $reason"
done
echo "$seen commands run, $only_looked_at looked for, ${#skipped[@]} not run"
[[ $seen -ge 25 ]] || fail "only $seen commands were found: the pages have another form"
finish

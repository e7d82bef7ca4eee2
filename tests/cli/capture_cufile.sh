#!/usr/bin/env bash
# Reads and writes by libcufile, with made-up libraries in place of NVIDIA's. Needs root, BPF and a C compiler.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
: "${REPRISE_BUILD_DIR:=$(dirname "$REPRISE")}"
programs=$REPRISE_BUILD_DIR/programs

# What cannot be is said before anything runs.
run 2 "$REPRISE" capture --cufile nowhere.so --without cufile -o job.oplog -- touch ran
contains "$err" "--cufile and --without cufile exclude each other"
can_record || skip "this machine cannot record"
grep -Eq '^ *cufile +uprobe +yes' "$out" || skip "this machine has no probes on libraries"
command -v python3 >/dev/null || skip "no python3"
cc=$(command -v gcc || command -v clang) || skip "no C compiler"
run 2 "$REPRISE" capture --cufile nowhere.so -o job.oplog -- touch ran
contains "$err" "--cufile: there is no file nowhere.so"
run 2 "$REPRISE" capture --cufile "$(realpath "$REPRISE")" -o job.oplog -- touch ran
contains "$err" "has no functions of libcufile"
[[ ! -e ran && ! -e job.raw ]] || fail "something was done without the library"

fakes=$REPRISE_SOURCE_DIR/tests/capture/fake_cufile
for compiler in gcc clang; do
    command -v $compiler >/dev/null || continue
    mkdir -p "lib-$compiler"
    flags=(-std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror)
    run 0 $compiler "${flags[@]}" -fPIC -shared -Wl,-soname,libcufile.so.0 -o lib-$compiler/libcufile.so.0 \
        "$fakes/fake_cufile.c" -lpthread
    run 0 $compiler "${flags[@]}" -fPIC -shared -Wl,-soname,libcuda.so.1 -o lib-$compiler/libcuda.so.1 "$fakes/fake_cuda.c"
    run 0 $compiler "${flags[@]}" -o driver "$fakes/driver.c" -lpthread
    run 0 $compiler "${flags[@]}" -I "$REPRISE_SOURCE_DIR" -o job "$fakes/job.c" -L "lib-$compiler" -l:libcufile.so.0 \
        -l:libcuda.so.1
done
[[ $failures == 0 ]] || finish
lib=$tmp/lib-$(basename "$cc") # others have nothing to do with it
mkdir root
STANDIN_CUFILE=compat LD_LIBRARY_PATH=$lib ./job "$tmp/root" --setup || { echo "FAILED: the set-up"; exit 1; }
dd if=root/data of=/dev/null iflag=direct bs=4096 count=1 2>/dev/null || skip "no O_DIRECT on this file system"

export STANDIN_DRIVER=$tmp/nvidia-fs0
./driver "$STANDIN_DRIVER" 3000 &
driver=$!
trap 'rm -f "$STANDIN_DRIVER"; kill "$driver" 2>/dev/null; rm -rf "$tmp"' EXIT
for _ in $(seq 50); do [[ -s $STANDIN_DRIVER ]] && break; sleep 0.1; done

# record NAME MODE OPTION...: the job's part NAME; what is lost (exit code 1) its counters say
record() {
    local name=$1 mode=$2
    shift 2
    rm -f expect root/out
    run "0 1" env STANDIN_CUFILE="$mode" "$REPRISE" capture -q -f --raw --wait-all "$@" -o job.oplog -- \
        env LD_LIBRARY_PATH="$lib" ./job "$tmp/root" "$tmp/expect" "$name"
}
# checked EXPRESSION: python, of the log's ops on the job's files, its counters and what info says
checked() {
    "$REPRISE" dump --json job.oplog >ops.json && "$REPRISE" info --json job.oplog >info.json ||
        { fail "the log cannot be read"; return; }
    python3 - "$@" <<'PYTHON' || fail "$*"
import json, sys
ops = [json.loads(line) for line in open("ops.json")]
info = json.load(open("info.json"))
counters = {each["name"]: each["value"] for each in info.get("counters", [])}
def data(*kinds):
    return [op for op in ops if op["kind"] in kinds and op.get("size", 0) >= 1000 and op["result"] > 0]
for text in sys.argv[1:]:
    value = eval(text)
    assert value, (text, counters, [op["kind"] for op in ops if op.get("size")])
PYTHON
}

# Where a driver moves the data, no system call shows it, and the log holds what the library was asked for.
for name in sync batch stream odd failing; do
    # CUDA's waits are probed once libcufile is opened, which takes longer than this job.
    record "$name" gds --cufile "$lib/libcufile.so.0" --cufile "$lib/libcuda.so.1"
    "$programs/check_program" expect job.oplog >"$out" 2>&1 || { fail "$name: the log is not what the job did"; head -c 5000 "$out"; }
    "$programs/check_raw" expect job.raw >"$out" 2>&1 || { fail "$name: the raw records"; head -c 3000 "$out"; }
    cp job.oplog "$name.oplog"
    case $name in
        sync) checked 'counters["cufile_past_calls"] == 17' ;;
        batch) checked 'counters["cufile_past_calls"] == 32' ;;
        stream) checked 'counters["cufile_past_calls"] == 9' ;;
        odd) checked 'counters["cufile_past_calls"] == 5 and counters["cufile_widened"] == 2' ;;
        failing) checked 'counters["cufile_failed"] == 2 and "cufile_past_calls" not in counters' ;;
    esac
    checked '"cufile_by_calls" not in counters and "cufile_unseen" not in counters'
done

# A replay performs the same, with as many in flight.
as_deep() { # NAME
    python3 - "$1" <<'PYTHON'
import json, sys
run = json.load(open("run.json"))
name = sys.argv[1]
piece = 65536
read, written, depth = {"sync": (8 * piece + 4096, 8 * piece, 0), "batch": (32 * piece, 0, 16),
                        "stream": (8 * piece, piece, 8), "odd": (piece + 4096 + 8192 + 100, piece + 1000, 0)}[name]
assert run["mismatches"] == 0, run["mismatches"]
assert (run["bytes_read"], run["bytes_written"]) == (read, written), (run["bytes_read"], run["bytes_written"])
for which in ("recorded", "here"):
    requests = run["verdict"][which].get("requests")
    deepest = requests["in_flight"]["max"] if requests else 0
    assert deepest == depth, (which, deepest, depth)
PYTHON
}
for name in sync batch stream odd; do
    # Those of a stream are submitted one by one, and fast storage may end one before the next: it has five tries.
    for try in 1 2 3 4 5; do
        rm -rf "copy-$name"
        run 0 "$REPRISE" prepare -q "$name.oplog" --root "copy-$name"
        run "0 1" "$REPRISE" replay "$name.oplog" --root "copy-$name" --json
        cp "$out" run.json
        as_deep "$name" 2>"$err" && break
        [[ $name == stream && $try -lt 5 ]] || { fail "the replay of $name: $(tail -n 1 "$err")"; break; }
    done
done

# What the library does by system calls is in the log as these, once.
for name in sync batch stream; do
    record "$name" compat --cufile "$lib/libcufile.so.0" --cufile "$lib/libcuda.so.1"
    case $name in
        sync) checked 'len(data("pread")) == 9 and len(data("pwrite")) == 8 and counters["cufile_by_calls"] == 17' ;;
        batch) checked 'len(data("pread")) == 32 and counters["cufile_by_calls"] == 32' ;;
        stream) checked 'len(data("pread")) == 8 and len(data("pwrite")) == 1 and counters["cufile_by_calls"] == 9' ;;
    esac
    checked '"cufile_past_calls" not in counters and not data("aio_submit", "aio_complete")'
done

# A library that is found needs no option. One that is not found, or may not be probed, and that has its driver: the log
# is not whole, and says so.
LD_LIBRARY_PATH=$lib record sync gds
checked 'counters["cufile_past_calls"] == 17 and "cufile_unseen" not in counters'
for option in "" "--without cufile"; do
    # shellcheck disable=SC2086
    record sync gds $option
    checked 'counters["cufile_unseen"] == 1'
    run 0 "$REPRISE" prepare -q job.oplog --root late
    run 3 "$REPRISE" replay job.oplog --root late
    contains "$err" "cufile_unseen"
    rm -rf late
done
# Without the driver nothing is missing.
record sync compat --without cufile
checked 'counters["cufile_unprobed"] == 1 and "cufile_unseen" not in counters and len(data("pread")) == 9'
finish

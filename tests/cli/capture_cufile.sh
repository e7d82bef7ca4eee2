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
"$REPRISE" capture --check >"$out" 2>&1 || skip "this machine cannot record"
grep -Eq '^ *cufile +uprobe +yes' "$out" || skip "this machine has no probes on libraries"
command -v python3 >/dev/null || skip "no python3"
cc=$(command -v gcc || command -v clang) || skip "no C compiler"
run 2 "$REPRISE" capture --cufile nowhere.so -o job.oplog -- touch ran
contains "$err" "--cufile: nowhere.so has no functions of libcufile"
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

# record NAME MODE OPTION...: the job's part NAME
record() {
    local name=$1 mode=$2
    shift 2
    rm -f expect root/out
    run 0 env STANDIN_CUFILE="$mode" "$REPRISE" capture -q -f --raw --wait-all "$@" -o job.oplog -- \
        env LD_LIBRARY_PATH="$lib" ./job "$tmp/root" "$tmp/expect" "$name"
}
# checked EXPRESSION: python, of the log's ops on the job's files, its counters and what info says
checked() {
    "$REPRISE" dump --json job.oplog >ops.json && "$REPRISE" info --json=info.json job.oplog >/dev/null ||
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
    record "$name" gds --cufile "$lib/libcufile.so.0"
    "$programs/check_program" expect job.oplog >"$out" 2>&1 || { fail "$name: the log is not what the job did"; head -c 5000 "$out"; }
    "$programs/check_raw" expect job.raw >"$out" 2>&1 || { fail "$name: the raw records"; head -c 3000 "$out"; }
    cp job.oplog "$name.oplog"
done
finish

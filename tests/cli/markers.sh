#!/usr/bin/env bash
# Marks from C, C++ and Python, and the hook that marks an unmodified PyTorch
# job: which marks are made, and that the job does the same with and without.
# plain builds only
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
command -v cc >/dev/null || skip "no C compiler"
here=$REPRISE_SOURCE_DIR/tests/cli/markers
markers=$REPRISE_SOURCE_DIR/markers
export MARKS=$tmp/marks PYTHONDONTWRITEBYTECODE=1

warn=(-Wall -Wextra -Werror -I "$markers")
run 0 cc -std=c11 "${warn[@]}" -shared -fPIC -o "$tmp/spy.so" "$here/spy.c"
run 0 cc -std=c99 -D_POSIX_C_SOURCE=200809L "${warn[@]}" -o "$tmp/job" "$here/job.c"
run 0 g++ -std=c++11 -x c++ "${warn[@]}" -fsyntax-only "$here/job.c"

# marks EXPECTED: the marks made since the last call, without their pids.
marks() {
    equal "$(cut -d' ' -f2- "$MARKS" 2>/dev/null | tr '\n' ',')" "$1"
    rm -f "$MARKS"
}

run 0 env LD_PRELOAD="$tmp/spy.so" "$tmp/job"
marks "step 12 1,checkpoint -3 0,step 12 2,"
run 0 "$tmp/job" cost
cat "$out"
run 0 "$tmp/job" untouched
equal "$(cat "$out")" "in place: 0, then 1"

command -v python3 >/dev/null || skip "no python3 for the other half of this test"
run 0 env LD_PRELOAD="$tmp/spy.so" PYTHONPATH="$markers/python" python3 -c '
import reprise
with reprise.epoch(1):
    with reprise.step(2), reprise.batch(3), reprise.fetch(4):
        reprise.mark("é", 5)
    try:
        with reprise.span("fails", 6):
            raise ValueError
    except ValueError:
        pass
'
marks "epoch 1 1,step 2 1,batch 3 1,fetch 4 1,é 5 0,fetch 4 2,batch 3 2,step 2 2,fails 6 1,fails 6 2,epoch 1 2,"

# The hook runs the job's own sitecustomize, hides itself, and does nothing where PyTorch is not imported.
hook=$markers/python/hook
mkdir "$tmp/own"
echo 'print("own sitecustomize")' >"$tmp/own/sitecustomize.py"
show='import sys; print([p for p in sys.path if "hook" in p], sys.modules["sitecustomize"].__file__, "torch" in sys.modules)'
run 0 env LD_PRELOAD="$tmp/spy.so" PYTHONPATH="$hook:$tmp/own" python3 -c "$show"
equal "$(cat "$out")" "own sitecustomize
[] $tmp/own/sitecustomize.py False"
empty "$err"
marks ""
echo 'raise RuntimeError("own fault")' >"$tmp/own/sitecustomize.py"
run 0 env PYTHONPATH="$hook:$tmp/own" python3 -c pass
contains "$err" "own fault"

# A PyTorch that has not what the hook wraps: the job goes on, the recording says so.
mkdir -p "$tmp/strange/torch/utils/data"
touch "$tmp/strange/torch/__init__.py" "$tmp/strange/torch/utils/__init__.py" "$tmp/strange/torch/utils/data/__init__.py"
echo 'DataLoader = int' >"$tmp/strange/torch/utils/data/dataloader.py"
run 0 env LD_PRELOAD="$tmp/spy.so" PYTHONPATH="$hook:$tmp/strange" python3 -c '
import torch.utils.data.dataloader as d; print(d.DataLoader)'
equal "$(cat "$out")" "<class 'int'>"
empty "$err"
marks "reprise.hook.failed: AttributeError 0 0,"

python=python3
python3 -c 'import torch' 2>/dev/null || python=/usr/bin/python3 # Debian's, where another one comes first
"$python" -c 'import torch' 2>/dev/null || skip "no PyTorch (python3-torch) for the rest of this test"

# quiet NAME COMMAND...: the job's output is left in NAME; its messages must be none. PyTorch's own workers
# sometimes complain at their end, with the hook and without: such a run is shown and made again.
quiet() {
    local name=$1 try
    shift
    for try in 1 2 3; do
        rm -f "$MARKS"
        run 0 "$@"
        cp "$out" "$name"
        [[ -s $err ]] || return 0
        grep -E 'reprise_torch|sitecustomize|markers/python' "$err" && fail "a message of the hook: $*"
        printf 'try %s of %s had messages:\n' "$try" "$*"
        cat "$err"
    done
    fail "messages in each of three tries: $*"
}
# same KIND: the job's output is the same with and without the hook; its marks are left in $MARKS.
same() {
    quiet "$tmp/without" env PYTHONHASHSEED=0 "$python" "$here/job_torch.py" "$1"
    quiet "$tmp/with" env PYTHONHASHSEED=0 LD_PRELOAD="$tmp/spy.so" PYTHONPATH="$hook" "$python" "$here/job_torch.py" "$1"
    cmp "$tmp/without" "$tmp/with" || fail "$1: the hook changed the job's output"
    [[ -s $tmp/with ]] || fail "$1: the job did nothing"
}
epoch() { # SUFFIX NUMBER BATCHES [fetch]: the marks of the main process for one epoch
    local i
    printf 'epoch%s %s 1,' "$1" "$2"
    for ((i = 0; i < $3; i++)); do
        [[ -n ${4:-} ]] && printf 'fetch%s %s 1,fetch%s %s 2,' "$1" $i "$1" $i
        printf 'batch%s %s 0,' "$1" $i
    done
    [[ -n ${4:-} ]] && printf 'fetch%s %s 1,fetch%s %s 2,' "$1" "$3" "$1" "$3"
    printf 'epoch%s %s 2,' "$1" "$2"
}
same plain
marks "$(epoch '' 0 3 fetch)$(epoch '' 1 3 fetch)$(epoch .2 0 2 fetch)"

for kind in workers persistent spawn iterable; do
    same $kind
    main=$(head -n 1 "$MARKS" | cut -d' ' -f1)
    grep "^$main " "$MARKS" >"$tmp/main"
    grep -v "^$main " "$MARKS" >"$tmp/workers"
    batches=3
    [[ $kind == iterable ]] && batches=2
    equal "$(cut -d' ' -f2- "$tmp/main" | tr '\n' ',')" \
        "$(epoch '' 0 $batches)$(epoch '' 1 $batches)$(epoch .2 0 2)"
    # Every batch that arrived was fetched by a worker, once an epoch, and its fetch ended before.
    for ((i = 0; i < batches; i++)); do
        equal "$kind $i: $(grep -c " fetch $i 1\$" "$tmp/workers") $(grep -c " fetch $i 2\$" "$tmp/workers")" "$kind $i: 2 2"
    done
    equal "$kind: $(grep -c ' fetch.2 [01] 2$' "$tmp/workers")" "$kind: 2"
    pids=$(cut -d' ' -f1 "$tmp/workers" | sort -u | wc -l)
    case $kind in
        workers | iterable) equal "$kind: $pids workers" "$kind: 6 workers" ;;
        persistent) equal "$kind: $pids workers" "$kind: 4 workers" ;;
        spawn) equal "$kind: $pids workers" "$kind: 3 workers" ;;
    esac
    rm -f "$MARKS"
done
finish

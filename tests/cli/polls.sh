#!/usr/bin/env bash
# Waits whose time-out runs out until somebody wakes the task are one wait; a time-out that the program acts on stays.
# SPDX-License-Identifier: MIT
# plain builds only
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1
can_record || skip "this machine cannot record"
polls=$REPRISE_BUILD_DIR/programs/polls

# joined LOG: waits that a replay of it joins with the one that was ended
joined() {
    # On a busy machine the run may be late, and exit 1.
    "$REPRISE" replay "$1" --engine null -f --json=run.json >/dev/null 2>&1
    python3 -c 'import json; print(sum(c["count"] for c in json.load(open("run.json"))["counters"] if c["name"] == "waits_joined"))'
}

# joins N LOG COMMAND...: so many are joined of what it records. A thread that is off its processor for long between two
# waits computes, as far as the log tells: then once more.
joins() {
    for _ in 1 2 3; do
        run 0 "$REPRISE" capture -q -f -o "$2" -- "${@:3}"
        [[ $(joined "$2") != "$1" ]] || return 0
    done
    fail "$2: $(joined "$2") joined, not $1"
}

joins_at_least() {
    local count
    for _ in 1 2 3; do
        run 0 "$REPRISE" capture -q -f -o "$2" -- "${@:3}"
        count=$(joined "$2")
        ((count < $1)) || return 0
    done
    fail "$2: $count joined, fewer than $1"
}

joins 3 c.oplog "$polls"
joins 0 acts.oplog "$polls" lines

# The same with Python's Condition.wait(timeout).
cat >polls.py <<'EOF'
import sys, threading, time
told, end = threading.Condition(), False
lines = open(sys.argv[1], "w") if len(sys.argv) > 1 else None
def helper():
    with told:
        for wait in 0.02, 0.04, 0.08, None:
            if told.wait(wait):
                return
            if lines:
                print("still here", file=lines, flush=True)
thread = threading.Thread(target=helper)
thread.start()
time.sleep(0.3)
with told:
    end = True
    told.notify()
thread.join()
EOF
joins 3 python.oplog python3 polls.py
joins 0 python-acts.oplog python3 polls.py lines

# A thread that samples every 50 ms until it is told to stop, by an Event and by a flag.
cat >sampler.py <<'EOF'
import sys, threading, time
stop, going = threading.Event(), True
def sample(log):
    log.write(open("/proc/self/stat").read()), log.flush()
def by_event():
    with open("samples", "w") as log:
        while not stop.wait(0.05):
            sample(log)
def by_flag():
    with open("samples", "w") as log:
        while going:
            sample(log), time.sleep(0.05)
thread = threading.Thread(target=by_event if sys.argv[1] == "event" else by_flag)
thread.start()
end = time.thread_time() + 0.5
while time.thread_time() < end:
    pass
going = False
stop.set()
thread.join()
EOF
for how in event flag; do
    joins_at_least 4 "sampler-$how.oplog" python3 sampler.py "$how"
done

# Sleeps after which a thread looks in memory whether another is done; those of a number that is given stay.
cat >alive.py <<'EOF'
import concurrent.futures, sys, threading, time, zlib
data = bytes(1 << 20)
def work(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        zlib.crc32(data)
if sys.argv[1] == "alive":
    thread = threading.Thread(target=work, args=(0.5,))
    thread.start()
    while thread.is_alive():
        time.sleep(0.02)
elif sys.argv[1] == "future":
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        done = pool.submit(work, 0.5)
        while not done.done():
            print("not yet", flush=True)
            time.sleep(0.02)
else:
    threading.Thread(target=work, args=(0.25,)).start()
    for _ in range(25):
        time.sleep(0.02)
open("end", "w").write("end")
EOF
for how in alive future; do
    joins_at_least 10 "$how.oplog" python3 alive.py "$how"
done
joins 0 paced.oplog python3 alive.py paced

# Sleeps between looks at what another process writes, makes, renames or gives back, and for its end, are one wait for it;
# those until some time stay.
cat >handover.py <<'EOF'
import os, signal, sys, time
kind = sys.argv[1]
open("status", "w").write("0")
os.utime("status", (0, 0))
os.makedirs("in", exist_ok=True)
if kind == "lock":
    held = os.open("lock", os.O_CREAT | os.O_EXCL)
elif kind == "mkdir":
    os.mkdir("lock")
child = os.fork()
if child == 0:
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        pass
    if kind == "bytes":
        os.pwrite(os.open("status", os.O_WRONLY), b"1", 0)
    elif kind == "rename":
        open("new", "w").write("1, and more")
        os.rename("new", "status")
    elif kind == "time":
        os.utime("status", (1, 1))
    elif kind == "listing":
        open("in/one", "w")
    elif kind == "name":
        open("made", "w")
    elif kind == "lock":
        os.unlink("lock")
    elif kind == "mkdir":
        os.rmdir("lock")
    os._exit(0)
end = time.monotonic() + 0.5
def there():
    if kind in ("bytes", "rename"):
        return open("status").read() != "0"
    if kind == "time":
        return os.stat("status").st_mtime == 1
    if kind == "listing":
        return os.listdir("in") != []
    if kind == "child":
        return os.waitpid(child, os.WNOHANG) != (0, 0)
    if kind == "kill":
        try:
            os.kill(child, 0)
            return False
        except ProcessLookupError:
            return True
    if kind in ("lock", "mkdir"):
        try:
            os.mkdir("lock") if kind == "mkdir" else os.open("lock", os.O_CREAT | os.O_EXCL)
            return True
        except FileExistsError:
            return False
    os.path.exists("made")
    return os.path.exists("made") if kind == "name" else time.monotonic() > end
if kind == "kill":  # somebody else has to reap it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
while not there():
    time.sleep(0.04)
if kind not in ("child", "kill"):
    os.wait()
EOF
cat >handover.sh <<'EOF'
(i=0; while [ $i -lt 500000 ]; do i=$((i + 1)); done; : >made) &
while [ ! -e made ]; do sleep 0.04; done
EOF
for kind in bytes rename time listing name lock mkdir child kill nobody shell; do
    mkdir -p "job-$kind"
    command=(python3 ../handover.py "$kind")
    [[ $kind != shell ]] || command=(sh ../handover.sh)
    (cd "job-$kind" && exec "$REPRISE" capture -q -o log.oplog -- "${command[@]}")
    count=$(joined "job-$kind/log.oplog")
    if [[ $kind == nobody ]]; then equal "$count" 0; elif ((count < 4)); then fail "$kind: $count sleeps joined"; fi
    # What looks found in vain is a matter of timing: the result, and `compare`, call it the same job.
    (cd "job-$kind" && "$REPRISE" prepare -q log.oplog --root root --map "$PWD=." &&
        "$REPRISE" replay -f log.oplog --root root --pace afap -o run.oplog >run.out 2>&1)
    grep -q '^job *SAME: .* + 0 differ' "job-$kind/run.out" || { fail "$kind: a replay"; head -3 "job-$kind/run.out"; }
    "$REPRISE" compare "job-$kind/log.oplog" "job-$kind/run.oplog" >"job-$kind/compare.out" 2>&1
    grep -q '^job *SAME' "job-$kind/compare.out" || { fail "$kind: compare"; head -3 "job-$kind/compare.out"; }
done

# An event loop waits until its next timer, again and again: its log says for how long.
cat >loop.py <<'END'
import asyncio, os, sys
async def main():
    loop = asyncio.get_running_loop()
    reader, writer = os.pipe()
    loop.add_reader(reader, lambda: os.read(reader, 1))
    def tell():
        import time
        for _ in range(3):
            time.sleep(0.03)
            os.write(writer, b"x")
    told = loop.run_in_executor(None, tell)
    await asyncio.sleep(0.2)
    await told
asyncio.run(main())
END
run 0 "$REPRISE" capture -q -o loop.oplog -- python3 loop.py
run 0 "$REPRISE" dump loop.oplog
timeouts=$(sed -n 's/.* wait result=[01] arg=\([0-9]*\).*/\1/p' "$out" | awk '$1 > 256 && $1 % 256 == 7 { print int($1 / 256) }' | tr '\n' ' ')
[[ $(wc -w <<<"$timeouts") -ge 3 ]] || { fail "time-outs of the event loop: '$timeouts'"; grep ' wait ' "$out"; }
# It is woken at 30, 60 and 90 ms, and each time-out is shorter than the one before.
[[ $(tr ' ' '\n' <<<"$timeouts" | sed '/^$/d' | sort -nr | tr '\n' ' ') == "$timeouts" ]] || fail "not in order: $timeouts"
finish

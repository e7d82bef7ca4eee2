#!/usr/bin/env bash
# What makes a time say little about the storage although the run did what it was to: the first line and trust say it.
# SPDX-License-Identifier: MIT
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

# first TEXT: the first line of the output
first() { head -n 1 "$out" | grep -qxF -- "$1" || { fail "the first line is not '$1':"; head -n 3 "$out"; }; }
# value FILE EXPRESSION: of the JSON r
value() { python3 -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"; }

storage_model model.json

# iolog NAME PATH: 4 MiB of PATH are read, in 7 ms
iolog() {
    local i
    {
        printf 'fio version 3 iolog\n0 /data/in add\n0 /data/in open\n0 /data/in read 0 4096\n0 %s add\n0 %s open\n' "$2" "$2"
        for i in $(seq 0 63); do echo "$((i * 100)) $2 read $((i * 65536)) 65536"; done
        echo "7000 $2 close"
    } >"$1.log"
    run 0 "$REPRISE" import -q "$1.log" -o "$1.oplog"
    run 0 "$REPRISE" prepare -q "$1.oplog" --root "$1"
}

# Data that lies where programs do.
left_out="4.00 MiB of the job's 4.00 MiB are left out as program or system files; select with --only PATH"
i=0
for path in /var/lib/mydb/a.bin /opt/mine/a /usr/local/a.dat /usr/share/mine/a.bin /home/me/node_modules/a.bin \
    /home/me/conda/data/a.npy /home/me/lib/python3.11/site-packages/model/weights.pt /home/me/.git/pack; do
    i=$((i + 1))
    iolog "data$i" "$path"
    run 1 "$REPRISE" replay "data$i.oplog" --root "data$i"
    first "NOT MEASURED: $left_out."
    contains "$out" "trust       POOR  $left_out"
    grep -q '^time .* (no interval: trust POOR), recorded' "$out" || fail "replay does not say why there is no interval"
    lacks "$out" "the recording reads no file"
    lacks "$out" "95 %"
    run 1 "$REPRISE" predict "data$i.oplog" --storage model.json
    first "NOT MEASURED: $left_out."
    contains "$out" "trust POOR: $left_out"
    lacks "$out" "95 %"
    grep -q '^predicted .* (no interval: trust POOR), recorded' "$out" || fail "predict does not say why there is no interval"
done
run 1 "$REPRISE" predict data1.oplog --storage model.json --json
equal "$(value "$out" 'r["trust"], r["left_out_data_bytes"], r["elapsed_interval_s"], r["no_interval"], r["not_measured"]')" "('poor', 4194304, None, 'trust POOR', \"$left_out\")"
run 1 "$REPRISE" replay data1.oplog --root data1 --json
equal "$(value "$out" 'r["verdict"]["trust"], r["left_out_data_bytes"], r["elapsed_interval_s"], r["not_measured"]')" "('poor', 4194304, None, \"$left_out\")"
run 1 "$REPRISE" replay data1.oplog --root data1 --runs 2
contains "$out" "NOT MEASURED: $left_out"
run 0 "$REPRISE" prepare -q data1.oplog --root whole --only /
run 0 "$REPRISE" replay data1.oplog --root whole --only / --cache warm --json
equal "$(value "$out" 'r["not_measured"]')" None
run 0 "$REPRISE" predict data1.oplog --storage model.json --only /
lacks "$out" "NOT MEASURED"
lacks "$out" "left out"
# What a program needs is no loss.
for path in /usr/lib/x86_64-linux-gnu/libx.so.1 /home/me/lib/python3.11/site-packages/torch/lib/libtorch.so \
    /usr/lib/gcc/x86_64-linux-gnu/12/libgcc.a /usr/lib/locale/locale-archive /opt/app/lib/app.jar; do
    i=$((i + 1))
    iolog "data$i" "$path"
    run 0 "$REPRISE" replay "data$i.oplog" --root "data$i"
    lacks "$out" "left out as program"
    run 0 "$REPRISE" predict "data$i.oplog" --storage model.json
    lacks "$out" "left out as program"
done

# A job on two file systems, one of them memory.
if [[ $EUID == 0 ]] && can_record && mkdir scratch && mount -t tmpfs tmpfs scratch; then
    mkdir two
    head -c 100000 /dev/urandom >two/in
    run 0 "$REPRISE" capture -q -o two.oplog -- sh -c 'for i in 1 2 3 4; do dd if=two/in of=scratch/$i bs=4k status=none; done'
    umount scratch
    several="he recorded files lay on 2 file systems, one of them an\? [a-z0-9]* ([34] files"
    run 0 "$REPRISE" prepare two.oplog --root both
    grep -q "^  T$several, such as $tmp/.*): all are in this root; use --not PATH or --map.$" "$out" ||
        fail "two file systems: $(grep "file systems" "$out")"
    run 0 "$REPRISE" replay two.oplog --root both --pace afap
    grep -A3 ^trust "$out" | tr -s ' \n' ' ' | grep -q "^trust FAIR .*t$several, .* written, such as $tmp/" || fail "two file systems: $(grep ^trust "$out")"
    # A tmpfs that the job mounts, and that is gone as the recording ends.
    cat >job.sh <<'EOF'
mount -t tmpfs tmpfs scratch && cat two/in two/in two/in two/in >scratch/copy && dd if=scratch/copy of=two/out bs=4k count=200 status=none
cat two/in two/in two/in >/dev/null; umount scratch
EOF
    run 0 "$REPRISE" capture -q -o mounts.oplog -- sh job.sh
    run 0 "$REPRISE" prepare mounts.oplog --root mounts
    grep -q "file systems, one of them a tmpfs (1 file" "$out" || fail "a tmpfs of the job: $(grep "file systems" "$out")"
    run 0 "$REPRISE" replay two.oplog --root both --pace afap --not "$tmp/scratch"
    lacks "$out" "file systems"
    # Where the root has two, too.
    mkdir apart apart-scratch
    mkdir -p "apart$tmp/scratch"
    mount -t tmpfs tmpfs "apart$tmp/scratch"
    run 0 "$REPRISE" prepare -q two.oplog --root apart
    run 0 "$REPRISE" replay two.oplog --root apart --pace afap
    lacks "$out" "file systems"
    umount "apart$tmp/scratch"
    # A look at a file elsewhere is not worth a word.
    mount -t tmpfs tmpfs scratch
    head -c 100 /dev/urandom >scratch/note
    head -c 100M /dev/urandom >two/large
    run 0 "$REPRISE" capture -q -o note.oplog -- sh -c 'dd if=two/large of=two/copy bs=1M status=none; cat scratch/note'
    umount scratch
    run 0 "$REPRISE" prepare note.oplog --root note
    lacks "$out" "file systems"
    run 0 "$REPRISE" replay note.oplog --root note --pace afap
    lacks "$out" "file systems"
    rm -r two note
else
    echo "this user cannot record or mount: several file systems are not tested"
fi

# A sparse file of the job is prepared sparse; a compressed one is not.
if can_record; then
    mkdir image
    truncate -s 40M image/disk
    head -c 2M /dev/urandom | dd of=image/disk bs=1M seek=8 conv=notrunc status=none
    run 0 "$REPRISE" capture -q -o sparse.oplog -- dd if=image/disk of=image/copy bs=1M status=none
    run 0 "$REPRISE" prepare sparse.oplog --root as-it-was
    lacks "$out" "compressed or"
    run 0 "$REPRISE" replay sparse.oplog --root as-it-was --pace afap
    lacks "$out" "recording's device"
    if [[ $EUID == 0 ]] && truncate -s 256M packed.img && mkfs.btrfs -q packed.img >/dev/null 2>&1 &&
        mkdir packed && mount -o loop,compress-force=zstd packed.img packed 2>"$err"; then
        yes | head -c 40M >packed/disk
        sync
        run 0 "$REPRISE" capture -q -o packed.oplog -- dd if=packed/disk of=/dev/null bs=1M status=none
        umount packed
        # It is gone now, so what it held was asked for before.
        run 0 "$REPRISE" prepare packed.oplog --root full --only dataset
        contains "$out" "1 recorded file held 40.0 MiB compressed or sparse on the device: prepared with all of its size."
        run 0 "$REPRISE" replay packed.oplog --root full --only dataset
        contains "$out" "trust       POOR  40.0 MiB of the 40.0 MiB that are read were compressed or sparse on the recording's device"
    else
        echo "compressed files are not tested: $(head -n 1 "$err" 2>/dev/null)"
    fi
    run 0 "$REPRISE" prepare -q sparse.oplog --root empty --content sparse
    run 0 "$REPRISE" replay sparse.oplog --root empty --pace afap --cache warm
    lacks "$out" "recording's device"
else
    echo "this user cannot record: sparse files are not tested"
fi

# Work that ends when somebody else wants it to: a loop that is killed, a heartbeat.
if can_record; then
    head -c 10M /dev/urandom >loop
    run 0 "$REPRISE" capture -q -o killed.oplog -- bash -c 'while :; do dd if=loop of=/dev/null bs=1M status=none; done &
        sleep 0.3; kill $!; wait $!; true'
    run 0 "$REPRISE" dump killed.oplog
    contains "$out" "exit result=-4 arg=143"
    run 0 "$REPRISE" predict killed.oplog --storage model.json
    grep -q "^trust \(FAIR\|POOR\): .*ended by a signal (SIGTERM)" "$out" || fail "killed: $(grep ^trust "$out")"
    # On a busy machine the beats go on after the rest for a while: then once more.
    for _ in 1 2 3 4 5; do
        run 0 "$REPRISE" capture -q -f -o beats.oplog -- python3 -c '
import threading, time
going = True
def beat():
    with open("beats", "w") as file:
        while going:
            file.write("." * 8192), file.flush(), time.sleep(0.05)
thread = threading.Thread(target=beat)
thread.start()
while time.process_time() < 1: pass
going = False
thread.join()'
        run 0 "$REPRISE" predict beats.oplog --storage model.json --cpu-speed 1
        grep -q "nothing went on but" "$out" || break
    done
    run 0 "$REPRISE" predict beats.oplog --storage model.json --cpu-speed 20
    contains "$out" "nothing went on but sleeps one after the other, beside which others worked"
    run 0 "$REPRISE" predict beats.oplog --storage model.json --cpu-speed 1
    if grep -qE "recorded 1\.[0-4]" "$out"; then
        lacks "$out" "nothing went on but"
    else
        echo "the machine is too busy for a second of computing: $(head -n 1 "$out")"
    fi
    rm loop
else
    echo "this user cannot record: what signals end is not tested"
fi

# Names that the recording read from its device, and that are in memory here: find on a file system just mounted.
slow=/sys/fs/cgroup/blkio/reprise-test-$$
clean() {
    [[ ! -d $slow ]] || rmdir "$slow"
    ! mountpoint -q "$tmp/disk" || umount "$tmp/disk"
    [[ -z ${loop:-} ]] || losetup -d "$loop"
    rm -rf "$tmp"
}
trap clean EXIT
if [[ $EUID != 0 ]] || ! can_record; then
    echo "this user cannot record: names in memory are not tested"
elif ! mkdir -p disk || ! truncate -s 64M disk.img || ! mkfs.ext4 -q disk.img ||
    ! loop=$(losetup --show -f --direct-io=on disk.img) || ! mount "$loop" disk; then
    echo "no file system can be made: names in memory are not tested"
elif ! mkdir "$slow" 2>/dev/null || ! echo "$(lsblk -no MAJ:MIN "$loop" | tr -d ' ') 500" >"$slow/blkio.throttle.read_iops_device"; then
    echo "no block I/O controller: names in memory are not tested"
else
    for i in $(seq 200); do mkdir -p "disk/$((i % 7))/$i" && touch "disk/$((i % 7))/$i/file"; done
    umount disk
    mount "$loop" disk
    run 0 bash -c 'echo $BASHPID >"$1/cgroup.procs"; exec "$2" capture -q -o find.oplog -- find disk -size +1' - "$slow" "$REPRISE"
    run 0 "$REPRISE" prepare -q find.oplog --root find
    # A test beside this one may empty the machine's caches meanwhile: then once more.
    for _ in 1 2 3 4 5; do
        find find >/dev/null
        rc=0
        "$REPRISE" replay find.oplog --root find --pace afap >"$out" 2>"$err" || rc=$?
        [[ $rc != 1 ]] || break
    done
    equal "$rc" 1
    head -n 1 "$out" | grep -qF "NOT MEASURED: names were cached here, and not when recorded (" || fail "the first line: $(head -n 1 "$out")"
    contains "$out" "trust       POOR  names were cached here"
    run 0 "$REPRISE" replay find.oplog --root find --pace afap --drop-caches
    lacks "$out" "names were cached here"
    run 0 "$REPRISE" replay find.oplog --root find --pace afap --cache warm
    lacks "$out" "names were cached here"
    sed 's/"open_cold_ns": [0-9]*/"open_cold_ns": 0/' model.json >names.json
    run 1 "$REPRISE" predict find.oplog --storage names.json
    head -n 1 "$out" | grep -qE "^NOT MEASURED: names count as cached, and not when recorded \(.*\): calibrate --storage as root measures them\.$" ||
        fail "the first line: $(head -n 1 "$out")"
    for option in "--storage model.json" "--storage names.json --cache warm"; do
        # shellcheck disable=SC2086
        run 0 "$REPRISE" predict find.oplog $option
        lacks "$out" "names count as cached"
    done
fi

finish

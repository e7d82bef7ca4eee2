#!/usr/bin/env bash
# O_DIRECT of part of a block, on a storage that takes whole ones only: said and handled, whoever asks. Needs root, loop
# devices and a file system whose blocks may be 4 KiB; of requests BPF and fio, too.
# SPDX-License-Identifier: MIT
# plain builds only
# shellcheck source=lib.bash
source "$(dirname "$0")/lib.bash"
cd "$tmp" || exit 1

truncate -s 400M image
device=$(losetup -f --show --sector-size 4096 image 2>"$err") || skip "no loop device: $(head -n 1 "$err")"
trap 'umount "$tmp/mnt" 2>/dev/null; losetup -d "$device"; rm -rf "$tmp"' EXIT
mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$device" 2>"$err" || skip "no mkfs.ext4: $(head -n 1 "$err")"
mkdir mnt
mount "$device" mnt 2>"$err" || skip "it cannot be mounted: $(head -n 1 "$err")"

# As strace tells of a job on blocks of 512 bytes: 120 reads by each call and at each end of the file, 43 writes, and a
# buffer that no device takes.
python3 - <<'END' >job.strace
at = 1700000000.0
def line(text):
    global at
    print("1 %.6f %s" % (at, text))
    at += 0.001
def lines(direct, name, flags, calls):
    line('openat(AT_FDCWD, "/data/%s", %s%s) = 3 <0.000010>' % (name, flags, "|O_DIRECT" if direct else ""))
    for call in calls:
        line(call)
    line("close(3) = 0 <0.000010>")
line('execve("/bin/job", ["job"], 0x7f) = 0 <0.000010>')
size = 1_000_000
reads = ['pread64(3, "x"..., 512, %d) = 512 <0.000100>' % (512 * i) for i in range(1, 80)]
reads += ['read(3, "x"..., 1536) = 1536 <0.000100>' for i in range(20)]
reads += ['preadv(3, [{iov_base="x"..., iov_len=512}, {iov_base="x"..., iov_len=1024}], 2, %d) = 1536 <0.000100>' % (512 * i)
          for i in range(1, 20)]
reads += ['pread64(3, "x"..., 1024, %d) = %d <0.000100>' % (size // 512 * 512, size % 512)]
reads += ['pread64(3, 0x7f01, 4096, 0) = -1 EINVAL (Invalid argument) <0.000010>']
lines(True, "in", "O_RDONLY", reads)
lines(True, "out", "O_RDWR|O_CREAT", ['write(3, "x"..., 512) = 512 <0.000100>' for i in range(21)]
      + ['pwrite64(3, "x"..., 1536, %d) = 1536 <0.000100>' % (512 * (40 + i)) for i in range(20)]
      + ['pwritev(3, [{iov_base="x"..., iov_len=512}], 1, 512) = 512 <0.000100>'])
lines(True, "out", "O_WRONLY|O_APPEND", ['write(3, "x"..., 512) = 512 <0.000100>'])
lines(False, "in", "O_RDONLY", ['read(3, "x"..., 1000448) = 1000000 <0.000100>'])
line("exit_group(0) = ?")
line("+++ exited with 0 +++")
END
run 0 "$REPRISE" import -q job.strace -o job.oplog
run 0 "$REPRISE" prepare -q job.oplog --root mnt/job
run 0 "$REPRISE" replay job.oplog --root mnt/job --json=job.json
contains "$out" "job         SAME"
contains "$out" "this storage refuses O_DIRECT on parts of a block: 119 reads took whole ones"
python3 - job.json <<'END' || fail "what the result says of parts of blocks"
import json, sys
access = json.load(open(sys.argv[1]))["access"]
assert access["part_block_reads"] == 119 and access["part_block_writes"] == 43, access
assert access["part_block_asked_bytes"] == 79 * 512 + 39 * 1536 + 64, access
assert access["part_block_fetched_bytes"] > access["part_block_asked_bytes"], access
assert access["part_block_written_bytes"] == 23 * 512 + 20 * 1536, access
END
equal "$(stat -c %s mnt/job/data/out)" $((512 * 62 + 512))
# Every byte read is what the preparation wrote, the ends of the file included.
run 0 "$REPRISE" prepare -q job.oplog --root mnt/job --reset
run 0 "$REPRISE" replay job.oplog --root mnt/job --verify content --json=verify.json
python3 - verify.json <<'END' || fail "what was verified"
import json, sys
verify = json.load(open(sys.argv[1]))["verify"]
assert verify["reads"] == 120 and verify["unchecked_bytes"] == 0, verify
END

can_record || skip "no requests: this machine cannot record"
command -v fio >/dev/null || skip "no requests: no fio"
head -c 8M /dev/urandom >data
for engine in io_uring libaio; do
    for rw in randread randwrite; do
        run 0 "$REPRISE" capture -q -f -o "$engine.oplog" -- fio --name=j --filename="$tmp/data" --rw=$rw --bs=1536 --blockalign=512 \
            --iodepth=8 --ioengine=$engine --number_ios=300 --thread --direct=1
        grep -q "fio: .*not supported\|io_queue_init\|err=22" "$err" && skip "fio: no such $engine here"
        run 0 "$REPRISE" prepare -q "$engine.oplog" --root "mnt/$engine-$rw"
        run 0 "$REPRISE" replay "$engine.oplog" --root "mnt/$engine-$rw" --pace afap --json="$engine.json" -f
        contains "$out" "job         SAME"
        python3 - "$engine.json" $rw <<'END' || fail "$engine, $rw: what the result says of parts of blocks"
import json, sys
result = json.load(open(sys.argv[1]))
# Two or three of eight places are where blocks of 4 KiB begin or end as well; a request is part of one all the same.
what = "reads" if sys.argv[2] == "randread" else "writes"
assert result["access"]["part_block_" + what] == 300, result["access"]
assert result["verdict"]["here"]["requests"]["bytes_read"] == (300 * 1536 if what == "reads" else 0)
END
    done
done
finish

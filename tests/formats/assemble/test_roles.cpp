// SPDX-License-Identifier: MIT
// docs/roles.md by examples.
#include <string>

#include "formats/assemble/roles.h"
#include "tests/support.h"

namespace reprise::test {

TEST_CASE("roles by path, type and use") {
    struct Row {
        Role role;
        const char* path;
        const char* use = "r";  // r read, w written, b big write, m renamed into, s synced, - only looked at
        FileType type = FileType::regular;
    };
    const auto none = FileType::unknown, directory = FileType::directory;
    const Row rows[] = {
        // shared memory, pipes
        {Role::ipc, "/dev/shm/torch_1_2", "rw"},
        {Role::ipc, "/dev/shm/sem.mp-x", "w"},
        {Role::ipc, "memfd:x", "w", FileType::anonymous},
        {Role::ipc, "/tmp/pymp-1/listener", "-", FileType::socket},
        {Role::ipc, "/d/fifo", "w", FileType::fifo},
        // system
        {Role::system, "/proc/self/status"},
        {Role::system, "/sys/devices/system/cpu/online"},
        {Role::system, "/etc/ld.so.cache"},
        {Role::system, "/dev/null", "w", FileType::character},
        {Role::system, "/dev/nvme0n1", "r", FileType::block},
        {Role::system, "/run/user/1000/x"},
        {Role::system, "/", "r", directory},
        {Role::system, "/var/lib/dpkg/status"},
        // program
        {Role::program, "/usr/lib/x86_64-linux-gnu/libm.so.6"},
        {Role::program, "/lib/x86_64-linux-gnu/libc.so.6"},
        {Role::program, "/usr/share/zoneinfo/Etc/UTC"},
        {Role::program, "/usr/lib/python3.11", "-", directory},
        {Role::program, "/opt/python/shims/python3"},
        {Role::program, "/home/u/venv/lib/python3.11/site-packages/numpy/core/x.txt"},
        {Role::program, "/home/u/venv/pyvenv.cfg"},
        {Role::program, "/home/u/venv/bin/python"},
        {Role::program, "/home/u/miniconda3/envs/t/share/x.dat"},
        {Role::program, "/p/lustre/u/job/train.py"},
        {Role::program, "/p/lustre/u/job/__pycache__/train.cpython-311.pyc"},
        {Role::program, "/home/u/ext/build/op.so"},
        {Role::program, "/home/u/lib/libfoo.so.2.1"},
        {Role::program, "/usr/lib/absent", "-", none},
        {Role::program, "/home/u/src/.git/HEAD"},
        {Role::program, "/home/u/src/.git/objects", "-", directory},
        // data sets under any path
        {Role::dataset, "/home/u/src/.git/objects/pack/pack-1.pack"},
        {Role::dataset, "/d/.git/annex/objects/k/1.jpg"},
        {Role::unknown, "/home/u/src/.git/objects/12", "-", directory},
        {Role::dataset, "/data/imagenet/train/a/1.JPEG"},
        {Role::dataset, "/home/u/data/x.npz"},
        {Role::dataset, "/mnt/d/x.tfrecord"},
        {Role::dataset, "/p/lustre/u/case_1.h5"},
        {Role::dataset, "/tmp/data/1.npy"},
        {Role::dataset, "/d/annotations.json"},
        {Role::dataset, "/d/tensors/1.pt"},
        {Role::dataset, "/opt/ml/input/data/1.rec"},
        {Role::dataset, "/home/u/.cache/huggingface/datasets/x.arrow"},
        {Role::dataset, "/data/bin/tokens.bin"},
        {Role::dataset, "/data/usr/x.jpg"},
        {Role::dataset, "/library/x.jpg"},
        {Role::dataset, "/d/only-stat.jpg", "-"},
        // checkpoints
        {Role::checkpoint, "/d/model.pt", "w"},
        {Role::checkpoint, "/d/model.PTH", "w"},
        {Role::checkpoint, "/d/model.safetensors"},
        {Role::checkpoint, "/d/epoch.ckpt"},
        {Role::checkpoint, "/d/checkpoint-500/rng_state_0", "w"},
        {Role::checkpoint, "/d/ckpts/x.tmp", "w"},
        {Role::checkpoint, "/d/out/shard-7", "b"},
        {Role::checkpoint, "/d/out/small-shard", "2s"},
        {Role::checkpoint, "/d/out/small-shard", "2m"},
        {Role::checkpoint, "/tmp/run/model.pt", "w"},
        {Role::checkpoint, "/d/final.npz", "w"},
        {Role::dataset, "/d/made/1.npz", "rw"},
        // logs
        {Role::log, "/d/train.log", "w"},
        {Role::log, "/d/slurm-1.out", "w"},
        {Role::log, "/d/runs/events.out.tfevents.1.host.2.0", "w"},
        {Role::log, "/d/metrics.json", "w"},
        {Role::log, "/home/u/logs/1/stdout", "w"},
        {Role::log, "/d/notes", "w"},
        {Role::log, "/home/u/logs/1/stderr", "-"},
        {Role::log, "/unnamed/pid-1-fd-1-1", "-"},
        {Role::dataset, "/unnamed/pid-1-fd-7-1", "r"},
        // caches
        {Role::cache, "/home/u/.cache/torch/kernels/x", "w"},
        {Role::cache, "/home/u/p/__pycache__/a.cpython-311.pyc.123", "w"},
        {Role::cache, "/home/u/venv/lib/python3.11/site-packages/a/__pycache__/b.pyc", "w"},
        {Role::cache, "/tmp/tmpabc", "w"},
        {Role::cache, "/d/work/sorted.run", "rw"},
        // undecided: directories (their files decide), names looked for in vain
        {Role::unknown, "/data/imagenet", "r", directory},
        {Role::unknown, "/data/nothing", "-", none},
    };
    for (const Row& row : rows) {
        const std::string use = row.use;
        const auto has = [&](char c) { return use.find(c) != std::string::npos; };
        RoleFacts facts;
        facts.path = row.path;
        facts.type = row.type;
        facts.read = has('r');
        facts.written = has('w') || has('b') || has('2');
        facts.renamed_into = has('m');
        facts.synced = has('s');
        facts.bytes_written = has('b') ? 100 << 20 : has('2') ? 2 << 20 : has('w') ? 100 : 0;
        CAPTURE(row.path);
        CAPTURE(use);
        CHECK(role_name(classify(facts)) == role_name(row.role));
    }
}

}  // namespace reprise::test

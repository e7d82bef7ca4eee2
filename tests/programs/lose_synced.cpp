// SPDX-License-Identifier: MIT
// lose_synced FOLDER RECORDING JOB COUNT: FOLDER is what `regress --verify` left with REPRISE_KEEP_CUTS. COUNT times, a
// write of the disk that holds synced data is lost, and the power is cut at the end. Exit code 0 where each is found.
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "cli/power_cut.h"
#include "cli/run_program.h"
#include "disk/write_log.h"

using namespace reprise;
using namespace reprise::cli;

namespace {

namespace fs = std::filesystem;
constexpr uint64_t kBlock = 4096;
constexpr size_t kBegin = 48;  // bytes by which a block is known

/// The last write of each block's beginning.
std::map<std::string, size_t> blocks_of(const fs::path& path, const WriteLog& log) {
    std::map<std::string, size_t> out;
    std::ifstream in(path, std::ios::binary);
    std::string begin(kBegin, '\0');
    for (size_t i = 0; i < log.writes().size(); ++i) {
        const DiskWrite& write = log.writes()[i];
        for (uint64_t at = 0; write.kind == DiskWrite::Kind::write && at + kBlock <= write.bytes; at += kBlock) {
            in.seekg(static_cast<std::streamoff>(write.data_at + at));
            in.read(begin.data(), kBegin);
            out[begin] = i;
        }
    }
    return out;
}

/// Writes with data that a file still has at the end, and that was synced.
std::set<size_t> synced_writes(const RunFiles& files, const std::map<std::string, size_t>& blocks) {
    FileModel model = files.begin();
    for (const TimedOp& one : files.ops()) {
        model.apply(one.task, one.number, one.op);
    }
    std::set<size_t> out;
    for (const ModelFilePointer& file : model.files()) {
        const Sync sync = last_sync(*file, model, INT64_MAX);
        if (file->names == 0 || file->unordered) {
            continue;
        }
        for (const Extent& extent : file->extents.of(0, file->size)) {
            const Source& source = extent.source;
            for (uint64_t at = (extent.from + kBlock - 1) / kBlock * kBlock;
                 source.is == Source::Is::written && source.end <= sync.begin && at + kBegin <= extent.to;
                 at += kBlock) {
                std::string begin(kBegin, '\0');
                fill_from(source, at, std::as_writable_bytes(std::span(begin)));
                if (const auto found = blocks.find(begin); found != blocks.end()) {
                    out.insert(found->second);
                }
            }
        }
    }
    return out;
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 5) {
        std::fprintf(stderr, "usage: lose_synced FOLDER RECORDING JOB COUNT\n");
        return 2;
    }
    const fs::path folder = argv[1], root = folder / "root";
    const size_t count = std::stoul(argv[4]);
    // The root's marker is on the image before the run.
    std::optional<RunFiles> files;
    fs::create_directories(root);
    {
        const LoopDevice loop(folder / "before");
        const MountedDevice mounted(loop.name(), root, "");
        files.emplace(argv[2], folder / "run.oplog", root / argv[3]);
    }
    const WriteLog log(folder / "writes");
    const std::set<size_t> all = synced_writes(*files, blocks_of(folder / "writes", log));
    std::vector<size_t> chosen(all.begin(), all.end());
    std::mt19937_64 random(1);
    std::shuffle(chosen.begin(), chosen.end(), random);
    chosen.resize(std::min(chosen.size(), count));
    size_t found = 0;
    for (const std::optional<size_t> lost : [&] {
             std::vector<std::optional<size_t>> cases{std::nullopt};
             cases.insert(cases.end(), chosen.begin(), chosen.end());
             return cases;
         }()) {
        const CutDisk disk{folder, folder / "before", folder / "writes", argv[3], "", 1, lost};
        const auto failures = results_of_cuts({{log.writes().size(), false}}, disk, *files, [](size_t) {}).failures;
        if (!lost) {
            std::printf("nothing lost: %zu findings\n", failures.size());
            if (!failures.empty()) {
                std::printf("%s\n", failures.front().c_str());
                return 1;
            }
            continue;
        }
        found += failures.empty() ? 0 : 1;
        std::printf("write %zu lost: %s\n", *lost, failures.empty() ? "NOT FOUND" : failures.front().c_str());
    }
    std::printf("%zu of %zu lost writes found (%zu writes hold synced data)\n", found, chosen.size(), all.size());
    return found == chosen.size() && chosen.size() == count ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "lose_synced: %s\n", error.what());
    return 3;
}

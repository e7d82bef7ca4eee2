// SPDX-License-Identifier: MIT
#include "cli/power_cut.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <random>

#include "cli/progress.h"
#include "cli/regress_checks.h"
#include "cli/run_program.h"
#include "cli/self_run.h"
#include "cli/units.h"
#include "disk/logged_disk.h"
#include "disk/write_log.h"
#include "formats/support/error.h"
#include "formats/support/one_line.h"
#include "formats/support/unique_fd.h"
#include "replay/plan/paths.h"

namespace reprise::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kUsualSize = uint64_t{1} << 30;
/// The run's clock and the disk's may be so far apart.
constexpr int64_t kClocks = 1'000'000;

class DurableWalk {
public:
    DurableWalk(int root, const FileModel& model, int64_t time) : root_(root), model_(model), time_(time) {}

    DurableCheck run() {
        for (const ModelFilePointer& file : model_.files()) {
            if (file->type == FileType::regular && !file->unordered && file->names != 0) {
                one(*file);
            }
        }
        return std::move(out_);
    }

private:
    void one(const ModelFile& file) {
        const Sync sync = last_sync(file, model_, time_);
        const auto promised = [&](const Source& source) {
            return source.is == Source::Is::prepared || (source.is == Source::Is::written && source.end <= sync.begin);
        };
        const std::vector<Extent> extents = file.extents.of(0, file.size);
        const bool any =
            std::any_of(extents.begin(), extents.end(), [&](const Extent& one) { return promised(one.source); });
        const bool empty_but_synced = file.size == 0 && sync.begin != INT64_MIN && file.resized <= sync.begin;
        if (!any && !empty_but_synced) {
            return;
        }
        // Under any name that it had since: whether a rename came through was not promised.
        TreeCheck worst;
        ++out_.files;
        for (auto name = file.had.rbegin(); name != file.had.rend(); ++name) {
            if (name->second < sync.begin) {
                continue;
            }
            TreeCheck here = under(name->first, extents, promised, sync);
            if (here.count == 0) {
                out_.bytes += here.bytes;
                for (const Extent& extent : extents) {
                    const bool synced = extent.source.is == Source::Is::written && promised(extent.source);
                    out_.synced_bytes += synced ? extent.to - extent.from : 0;
                }
                return;
            }
            if (worst.count == 0 || worst.findings.front().what == VerifyFinding::What::missing) {
                worst = std::move(here);
            }
        }
        for (VerifyFinding& finding : worst.findings) {
            out_.add(std::move(finding));
        }
    }

    TreeCheck under(const std::string& path, const std::vector<Extent>& extents,
                    const std::function<bool(const Source&)>& promised, const Sync& sync) const {
        TreeCheck here;
        const std::string by =
            sync.task == 0 ? "there before the run"
                           : "synced by op " + std::to_string(sync.op) + " of task " + std::to_string(sync.task);
        const UniqueFd fd(open_beneath(root_, path.c_str(), O_RDONLY | O_NOFOLLOW, 0, Links::refuse));
        if (!fd.valid()) {
            here.add({VerifyFinding::What::missing, path, 0, 0, 0, 0, 0, 0, by});
            return here;
        }
        check_bytes(fd.get(), path, extents, promised, here);
        for (VerifyFinding& finding : here.findings) {
            finding.detail = by;
        }
        return here;
    }

    int root_;
    const FileModel& model_;
    int64_t time_;
    DurableCheck out_;
};

void copy_image(const fs::path& from, const fs::path& to) {
    must_run({"cp", "--reflink=auto", "--sparse=always", from.string(), to.string()});
}

/// The disk at one moment after the other.
class CutImages {
public:
    CutImages(const CutDisk& disk, const RunFiles& files)
        : disk_(disk),
          files_(files),
          log_(disk.writes),
          image_(disk.folder / "cut"),
          forward_(disk.folder / "forward"),
          mount_(disk.folder / "mnt"),
          model_(files.begin()),
          random_(disk.seed) {
        fs::create_directories(mount_);
        copy_image(disk.before, forward_);
    }

    void check(const PowerCut& cut, const std::string& name) {
        const size_t all = log_.writes().size();
        const int64_t time = cut.write < all ? log_.writes()[cut.write].arrived - files_.origin_unix_ns() : INT64_MAX;
        for (; seen_ < files_.ops().size() && files_.ops()[seen_].op.begin <= time; ++seen_) {
            const TimedOp& one = files_.ops()[seen_];
            model_.apply(one.task, one.number, one.op);
        }
        advance(cut.write);
        make_image(cut);
        const std::vector<std::string> found = check_image(time);
        const std::string where = name + ", after write " + std::to_string(cut.write) + " of " + std::to_string(all) +
                                  (cut.loses_cache ? " without the disk's cache" : "") + ": ";
        for (const std::string& one : found) {
            results_.failures.push_back(where + one);
        }
        ++results_.cuts;
    }
    CutResults results() { return std::move(results_); }

private:
    void apply(size_t write, int image) const {
        if (disk_.lost != write) {
            log_.apply(log_.writes()[write], image);
        }
    }

    /// Brings the disk forward to the last flush before `write`.
    void advance(size_t write) {
        size_t flush = made_;
        for (size_t i = made_; i < write; ++i) {
            flush = log_.writes()[i].kind == DiskWrite::Kind::flush ? i : flush;
        }
        const UniqueFd forward(::open(forward_.c_str(), O_RDWR | O_CLOEXEC));
        for (; made_ < flush; ++made_) {
            apply(made_, forward.get());
        }
    }

    void make_image(const PowerCut& cut) {
        copy_image(forward_, image_);
        const UniqueFd image(::open(image_.c_str(), O_RDWR | O_CLOEXEC));
        for (size_t i = made_; i < cut.write; ++i) {
            if (!cut.loses_cache || random_() % 2 == 0) {
                apply(i, image.get());
            }
        }
    }

    std::vector<std::string> check_image(int64_t time) {
        const LoopDevice loop(image_);
        std::unique_ptr<MountedDevice> mounted;
        try {
            mounted = std::make_unique<MountedDevice>(loop.name(), mount_, disk_.mount_options);
        } catch (const Error& error) {
            return {"cannot be mounted: " + in_one_line(error.what())};
        }
        const fs::path root = mount_ / disk_.job;
        const UniqueFd fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        if (!fd.valid()) {
            return {"the root is not there"};
        }
        const DurableCheck durable = check_durable(fd.get(), model_, time);
        results_.bytes += durable.bytes;
        results_.synced_bytes += durable.synced_bytes;
        std::vector<std::string> out;
        for (const VerifyFinding& finding : durable.findings) {
            const bool missing = finding.what == VerifyFinding::What::missing;
            out.push_back(printable(finding.sentence()) + (missing ? ", " + finding.detail : ""));
        }
        return out;
    }

    const CutDisk& disk_;
    const RunFiles& files_;
    WriteLog log_;
    fs::path image_, forward_, mount_;
    FileModel model_;
    std::mt19937_64 random_;
    size_t seen_ = 0, made_ = 0;  // ops of the model, writes that the disk was brought forward by
    CutResults results_;
};

/// One disk, from the making of its file system to the last cut.
class CutRun {
public:
    CutRun(const RegressCell& cell, const CutWork& work)
        : cell_(cell),
          work_(work),
          image_(work.folder / "image"),
          mount_(work.folder / "mnt"),
          disk_{work.folder,    work.folder / "before",     work.folder / "writes",
                cell.job->name, cell.target->mount_options, work.seed} {
        check_own(work.folder);
        for (const char* const left : {"mnt", "served"}) {
            unmount_left(work.folder / left);
        }
        for (const char* const left : {"image", "cut", "served/disk"}) {
            detach_left(work.folder / left);
        }
        fs::remove_all(work.folder);
        fs::create_directories(mount_);
        fs::create_directories(work.folder / "served");
    }
    ~CutRun() {
        std::error_code ignored;
        if (std::getenv("REPRISE_KEEP_CUTS") == nullptr) {
            fs::remove_all(work_.folder, ignored);
        }
    }
    CutRun(const CutRun&) = delete;
    CutRun& operator=(const CutRun&) = delete;

    CheckedThing run() {
        CheckedThing out{kName, {}, ""};
        RegressCell cell = cell_;
        cell.root = mount_ / cell.job->name;
        prepare(cell);
        std::optional<RunFiles> files;
        {
            const DiskServer server(image_, disk_.writes, work_.folder / "served");
            const LoopDevice loop(work_.folder / "served" / kDiskName);
            const MountedDevice mounted(loop.name(), mount_, disk_.mount_options);
            const std::optional<RowFile::Json> row = work_.run(cell);
            if (!row) {
                return out;
            }
            out.failures = failures_of(*row);
            if (!out.failures.empty()) {
                return out;  // nothing follows from such a run
            }
            files.emplace(cell.job->log, work_.run_log(), cell.root);
            if (std::getenv("REPRISE_KEEP_CUTS") != nullptr) {
                fs::copy(work_.run_log(), work_.folder / "run.oplog");
            }
        }
        const std::vector<PowerCut> cuts = cuts_of(*files);
        Progress progress("power cuts");
        CutResults results = results_of_cuts(cuts, disk_, *files,
                                             [&](size_t done) { progress.update(done, cuts.size(), cell_.name()); });
        out.failures = std::move(results.failures);
        out.note = counted(results.cuts, "cut") + ", " + format_bytes(results.bytes) + " compared, of these " +
                   format_bytes(results.synced_bytes) + " synced by the run";
        return out;
    }

    static constexpr const char* kName = "synced data after power cuts";

private:
    /// What a killed run left there is removed; what is of others is not.
    static void check_own(const fs::path& folder) {
        constexpr std::array kOwn = {"image", "before", "writes", "cut", "forward", "mnt", "served", "run.oplog"};
        std::error_code none;
        for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
            if (std::find(kOwn.begin(), kOwn.end(), entry.path().filename()) == kOwn.end()) {
                throw usage_error(escape_line(entry.path().string()) + " is in the way of the images for power cuts",
                                  "move it away, or choose another folder with -o");
            }
        }
    }

    void prepare(const RegressCell& cell) {
        const UniqueFd made(::open(image_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
        const uint64_t size = cell_.target->size != 0 ? cell_.target->size : kUsualSize;
        if (!made.valid() || ::ftruncate(made.get(), static_cast<off_t>(size)) != 0) {
            throw machine_error("cannot make " + escape_line(image_.string()), "choose another folder with -o");
        }
        const LoopDevice loop(image_);
        std::vector<std::string> make = split_words(cell_.target->make, "[target " + cell_.target->name + "] make");
        make.push_back(loop.name());
        must_run(make);
        {
            const MountedDevice mounted(loop.name(), mount_, disk_.mount_options);
            work_.prepare(cell);
        }
        copy_image(image_, disk_.before);
    }

    std::vector<PowerCut> cuts_of(const RunFiles& files) const {
        std::vector<int64_t> arrived, synced;
        const WriteLog log(disk_.writes);
        for (const DiskWrite& write : log.writes()) {
            arrived.push_back(write.arrived);
        }
        for (const TimedOp& one : files.ops()) {
            if (info(one.op.kind).is(Trait::syncs) || one.op.kind == OpKind::syncfs) {
                synced.push_back(files.origin_unix_ns() + one.op.end());
            }
        }
        return choose_cuts(arrived, synced, work_.cuts, work_.seed);
    }

    const RegressCell& cell_;
    const CutWork& work_;
    fs::path image_, mount_;
    CutDisk disk_;
};

}  // namespace

/// The newest sync that had ended by then; begin INT64_MIN: none.
Sync last_sync(const ModelFile& file, const FileModel& model, int64_t time) {
    Sync out{INT64_MIN, INT64_MIN, 0, 0};
    for (const auto* const syncs : {&file.syncs, &model.syncs()}) {
        for (const Sync& one : *syncs) {
            out = one.end <= time - kClocks && one.begin > out.begin ? one : out;
        }
    }
    return out;
}

std::vector<PowerCut> choose_cuts(const std::vector<int64_t>& arrived_ns, const std::vector<int64_t>& synced_ns,
                                  size_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<PowerCut> out;
    std::vector<int64_t> synced = synced_ns;
    std::sort(synced.begin(), synced.end());
    const size_t after_syncs = std::min(synced.size(), count / 2);
    for (size_t i = 0; i < count; ++i) {
        size_t write = random() % (arrived_ns.size() + 1);
        if (i < after_syncs) {
            const int64_t end = synced[(2 * i + 1) * synced.size() / (2 * after_syncs)];
            write = static_cast<size_t>(std::find_if(arrived_ns.begin(), arrived_ns.end(),
                                                     [&](int64_t arrived) { return arrived > end + kClocks; }) -
                                        arrived_ns.begin());
        }
        out.push_back({write, i % 2 != 0});
    }
    std::stable_sort(out.begin(), out.end(), [](const PowerCut& a, const PowerCut& b) { return a.write < b.write; });
    return out;
}

DurableCheck check_durable(int root, const FileModel& model, int64_t time) {
    return DurableWalk(root, model, time).run();
}

CutResults results_of_cuts(const std::vector<PowerCut>& cuts, const CutDisk& disk, const RunFiles& files,
                           const std::function<void(size_t)>& progress) {
    CutImages images(disk, files);
    for (size_t i = 0; i < cuts.size() && !Interrupts::any(); ++i) {
        progress(i);
        images.check(cuts[i], "cut " + std::to_string(i + 1) + " of " + std::to_string(cuts.size()));
    }
    return images.results();
}

CheckedThing check_power_cuts(const RegressCell& cell, const CutWork& work) {
    CheckedThing out{CutRun::kName, {}, ""};
    if (cell.target->make.empty()) {
        out.skipped = "[target " + cell.target->name + "] does not say how to make its file system";
    } else if (!can_serve_disks()) {
        out.skipped = "this build has no libfuse3";
    } else if (::geteuid() != 0) {
        out.skipped = "loop devices and mounts require root";
    } else {
        out = CutRun(cell, work).run();
    }
    return out;
}

}  // namespace reprise::cli

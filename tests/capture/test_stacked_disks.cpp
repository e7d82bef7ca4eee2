// SPDX-License-Identifier: MIT
// Which disks stand on which others, in made-up /sys trees.
#include "capture/stacked_disks.h"

#include <sys/sysmacros.h>

#include <string>

#include "formats/assemble/recording/disk_stacks.h"
#include "tests/support.h"

using namespace reprise;
using namespace reprise::test;

namespace {

namespace fs = std::filesystem;

class Sys {
public:
    fs::path root() const { return dir_ / "sys"; }

    /// `place` below /sys/devices; a whole disk is in /sys/block, too.
    void disk(const std::string& place, const std::string& number, bool partition = false) const {
        const fs::path device = root() / "devices" / place;
        fs::create_directories(device);
        write_file(device / "dev", number + "\n");
        if (partition) {
            write_file(device / "partition", "1\n");
        }
        link(device, root() / "dev/block" / number);
        if (!partition) {
            link(device, root() / "block" / device.filename());
        }
    }
    void slave(const std::string& disk, const std::string& below) const {
        link(root() / "devices" / below, root() / "block" / disk / "slaves" / fs::path(below).filename());
    }
    void loop(const std::string& disk, const std::string& file) const {
        fs::create_directories(root() / "block" / disk / "loop");
        write_file(root() / "block" / disk / "loop/backing_file", file + "\n");
    }
    StackedDisks stacked() const {
        return stacked_disks(root(), [](const fs::path& path) -> std::optional<dev_t> {
            const std::string text = path.string();
            if (text.starts_with("/on_vda1/")) {
                return makedev(254, 1);
            }
            if (text == "/on_vda1") {
                return makedev(254, 1);
            }
            return text.starts_with("/on_dm/") ? std::optional(makedev(253, 0)) : std::nullopt;
        });
    }

private:
    static void link(const fs::path& to, const fs::path& at) {
        fs::create_directories(at.parent_path());
        fs::create_symlink(to, at);
    }
    TempDir dir_;
};

}  // namespace

TEST_CASE("slaves are below, partitions are their disk, a loop device is on its file's disk") {
    Sys sys;
    sys.disk("pci/vda", "254:0");
    sys.disk("pci/vda/vda1", "254:1", true);
    sys.disk("pci/sda", "8:0");
    sys.disk("virtual/dm-0", "253:0");
    sys.disk("virtual/md0", "9:0");
    for (const int i : {0, 1, 2, 3, 4}) {
        sys.disk("virtual/loop" + std::to_string(i), "7:" + std::to_string(i));
    }
    sys.slave("dm-0", "pci/vda/vda1");
    sys.slave("md0", "pci/sda");
    sys.slave("md0", "pci/vda");
    sys.loop("loop0", "/on_vda1/image");
    sys.loop("loop1", "/on_dm/an image");
    sys.loop("loop2", "/on_tmpfs/image");
    sys.loop("loop3", "/on_vda1/gone (deleted)");
    CHECK(sys.stacked() == StackedDisks{{"253:0", {"254:0"}},
                                        {"7:0", {"254:0"}},
                                        {"7:1", {"253:0"}},
                                        {"7:3", {"254:0"}},
                                        {"9:0", {"254:0", "8:0"}}});
    CHECK(stacked_disks(sys.root() / "nowhere").empty());
}

TEST_CASE("the device of a file; none of what is on no device") {
    CHECK_FALSE(disk_of("").has_value());
    CHECK_FALSE(disk_of("/no/such/file").has_value());
    CHECK_FALSE(disk_of("/proc/self/maps").has_value());
}

TEST_CASE("what the recorder writes is what the assembly reads") {
    CHECK(stacks_of_meta(R"({"stacked_disks":{"7:0":["254:0"],"9:0":["254:0","8:16"]}})") ==
          DiskStacks{{7U << 20, {254U << 20}}, {9U << 20, {254U << 20, (8U << 20) + 16}}});
    CHECK(stacks_of_meta("{}").empty());
    CHECK(stacks_of_meta("[").empty());
    CHECK(stacks_of_meta(R"({"stacked_disks":{"7":["254:0"],"7:x":["8:0"],"7:1":"8:0","7:2":[1,"8:0x",":","4096:0"]}})")
              .empty());
}

// SPDX-License-Identifier: MIT
// A file whose opens last until they are let go, as on storage that takes its time: a file system of one file, by the
// kernel's own FUSE protocol (linux/fuse.h).
#pragma once

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "formats/support/unique_fd.h"

namespace reprise::test {

class HeldFile {
public:
    /// Over an existing file. held() says whether that worked: it takes the right to mount.
    HeldFile(const std::filesystem::path& path, uint64_t bytes)
        : path_(path), bytes_(bytes), device_(::open("/dev/fuse", O_RDWR | O_CLOEXEC)) {
        const std::string options =
            "fd=" + std::to_string(device_.get()) + ",rootmode=100644,user_id=0,group_id=0,allow_other";
        held_ = device_.get() >= 0 && mount("reprise-test", path.c_str(), "fuse", 0, options.c_str()) == 0;
        if (held_) {
            server_ = std::thread([this] { serve(); });
        }
    }
    ~HeldFile() {
        if (held_) {
            let_go();
            umount2(path_.c_str(), MNT_DETACH);
            ends_ = true;
            server_.join();
        }
    }
    HeldFile(const HeldFile&) = delete;
    HeldFile& operator=(const HeldFile&) = delete;

    bool held() const { return held_; }
    void let_go() { goes_ = true; }

private:
    void serve() {
        std::vector<char> in(size_t{1} << 18);
        std::vector<uint64_t> waiting;
        while (!ends_) {
            pollfd one{device_.get(), POLLIN, 0};
            if (poll(&one, 1, 5) > 0) {
                if (read(device_.get(), in.data(), in.size()) < static_cast<ssize_t>(sizeof(fuse_in_header))) {
                    if (errno == ENODEV) {
                        return;
                    }
                    continue;
                }
                fuse_in_header head{};
                std::memcpy(&head, in.data(), sizeof head);
                if (head.opcode == FUSE_OPEN) {
                    waiting.push_back(head.unique);
                } else {
                    answer(head, in.data() + sizeof head);
                }
            }
            if (goes_) {
                for (const uint64_t unique : waiting) {
                    reply(unique, 0, fuse_open_out{});
                }
                waiting.clear();
            }
        }
    }
    void answer(const fuse_in_header& head, const char* what) {
        switch (head.opcode) {
            case FUSE_INIT: {
                fuse_init_out out{};
                out.major = FUSE_KERNEL_VERSION;
                out.minor = 31;
                out.max_write = 1 << 17;
                return reply(head.unique, 0, out);
            }
            case FUSE_GETATTR: {
                fuse_attr_out out{};
                out.attr.ino = 1;
                out.attr.size = bytes_;
                out.attr.mode = S_IFREG | 0644;
                out.attr.nlink = 1;
                out.attr.blksize = 4096;
                return reply(head.unique, 0, out);
            }
            case FUSE_READ: {
                fuse_read_in asked{};
                std::memcpy(&asked, what, sizeof asked);
                const uint64_t left = bytes_ - std::min<uint64_t>(asked.offset, bytes_);
                const std::string data(std::min<uint64_t>(asked.size, left), 'a');
                return send(head.unique, 0, data.data(), data.size());
            }
            case FUSE_RELEASE:
            case FUSE_DESTROY: return send(head.unique, 0, nullptr, 0);
            case FUSE_FORGET:
            case FUSE_BATCH_FORGET:
            case FUSE_INTERRUPT: return;
            default: return send(head.unique, -ENOSYS, nullptr, 0);
        }
    }
    template <class Out>
    void reply(uint64_t unique, int error, const Out& out) {
        send(unique, error, reinterpret_cast<const char*>(&out), sizeof out);
    }
    void send(uint64_t unique, int error, const char* data, size_t bytes) {
        fuse_out_header head{};
        head.len = static_cast<uint32_t>(sizeof head + bytes);
        head.error = error;
        head.unique = unique;
        std::vector<char> out(sizeof head + bytes);
        std::memcpy(out.data(), &head, sizeof head);
        if (bytes != 0) {
            std::memcpy(out.data() + sizeof head, data, bytes);
        }
        // Who asked may be gone.
        [[maybe_unused]] const ssize_t written = write(device_.get(), out.data(), out.size());
    }

    const std::filesystem::path path_;
    const uint64_t bytes_;
    const UniqueFd device_;
    bool held_ = false;
    std::atomic<bool> goes_ = false, ends_ = false;
    std::thread server_;
};

}  // namespace reprise::test

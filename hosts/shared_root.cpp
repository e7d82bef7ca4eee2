// SPDX-License-Identifier: MIT
#include "hosts/shared_root.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <random>
#include <string>

#include "formats/support/unique_fd.h"

namespace reprise {
namespace {

/// The host and the directory on it, for ranks that cannot write there.
std::string place_of(const std::filesystem::path& root) {
    std::ifstream in("/proc/sys/kernel/random/boot_id");
    std::string boot;
    std::getline(in, boot);
    struct stat status {};
    if (::stat(root.c_str(), &status) != 0) {
        return boot;
    }
    return boot + " " + std::to_string(status.st_dev) + " " + std::to_string(status.st_ino);
}

std::string own_name(const std::string& word, uint32_t rank) {
    return ".reprise-rank-" + word + "-" + std::to_string(rank);
}

/// The least rank whose file lies in the directory; `mine` where none does.
uint32_t first_seen(const std::filesystem::path& root, const std::string& word, uint32_t mine) {
    uint32_t first = mine;
    const std::string begin = ".reprise-rank-" + word + "-";
    std::error_code error;
    for (std::filesystem::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        uint32_t rank = 0;
        if (name.starts_with(begin) &&
            std::from_chars(name.data() + begin.size(), name.data() + name.size(), rank).ec == std::errc()) {
            first = std::min(first, rank);
        }
    }
    return first;
}

/// Removes the file whatever happens.
class Nonce {
public:
    Nonce(const std::filesystem::path& root, const std::string& name) : path_(root / name) {
        const UniqueFd file(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
        written_ = file.valid();
    }
    ~Nonce() {
        if (written_) {
            ::unlink(path_.c_str());
        }
    }
    Nonce(const Nonce&) = delete;
    Nonce& operator=(const Nonce&) = delete;
    bool written() const { return written_; }

private:
    std::filesystem::path path_;
    bool written_ = false;
};

}  // namespace

RootGroup group_by_root(Conversation& ranks, const std::filesystem::path& root) {
    const uint32_t mine = ranks.rank();
    std::string word;
    if (mine == 0) {
        std::random_device random;
        word = std::to_string(random()) + std::to_string(random());
    }
    word = ranks.announce(word);
    uint32_t first = 0;
    bool asked = false;
    {  // while the file is there
        const Nonce nonce(root, own_name(word, mine));
        asked = nonce.written();
        ranks.gate();
        first = asked ? first_seen(root, word, mine) : mine;
        ranks.gate();
    }
    const std::vector<std::string> all =
        ranks.share((asked ? "first " + std::to_string(first) : "place " + place_of(root)));
    const std::string& own = all[mine];
    RootGroup group;
    for (uint32_t rank = 0; rank < all.size(); ++rank) {
        if (all[rank] == own) {
            group.place += rank < mine ? 1 : 0;
            group.members.push_back(rank);
        }
    }
    return group;
}

}  // namespace reprise

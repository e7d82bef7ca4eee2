// SPDX-License-Identifier: MIT
#include "formats/oplog/unfinished.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "formats/oplog/layout.h"
#include "formats/support/error.h"

namespace reprise {

std::filesystem::path unfinished_log(const std::filesystem::path& log) { return log.string() + ".partial"; }

void check_unfinished_log(const std::filesystem::path& log) {
    const std::filesystem::path name = unfinished_log(log);
    std::error_code ignored;
    if (std::filesystem::symlink_status(name, ignored).type() != std::filesystem::file_type::regular) {
        return;
    }
    std::array<char, sizeof(FileHead::magic)> head{};
    std::ifstream in(name, std::ios::binary);
    in.read(head.data(), head.size());
    const bool own = in.is_open() && std::equal(head.begin(), head.begin() + in.gcount(), kMagic.begin(),
                                                [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
    if (!own) {
        throw usage_error(escape_line(name.string()) + " exists and is no unfinished op log; it would be replaced",
                          "move it away, or choose another file with -o");
    }
}

}  // namespace reprise

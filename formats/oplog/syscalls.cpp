// SPDX-License-Identifier: MIT
#include "formats/oplog/syscalls.h"

namespace reprise {

std::string_view syscall_name(unsigned nr) {
    switch (nr) {
        // clang-format off
#define RAW(nr, name, kind, arguments, action, flags, arg) \
    case nr: return #name;
#include "formats/oplog/syscalls.def"
        // clang-format on
        default: return {};
    }
}

}  // namespace reprise

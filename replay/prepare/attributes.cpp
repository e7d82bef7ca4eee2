// SPDX-License-Identifier: MIT
#include "replay/prepare/attributes.h"

#include <linux/limits.h>
#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>

namespace reprise {

void note_attribute(const Op& op, FileId file, AttributeFacts& facts) {
    const bool asks = op.kind == OpKind::getxattr;
    if (!asks && op.kind != OpKind::setxattr && op.kind != OpKind::removexattr) {
        return;
    }
    // A value that was too long for the buffer was there, too.
    const bool too_long = asks && op.result == -ERANGE;
    if (file == 0 || op.text == 0 || (op.result < 0 && !too_long)) {
        return;
    }
    AttributeFact& fact = facts[{file, op.text}];
    if (op.kind == OpKind::setxattr) {
        fact.set = std::min(fact.set, op.begin);
        return;
    }
    fact.found = std::min(fact.found, op.begin);
    if (asks && op.begin < fact.sized) {
        fact.sized = op.begin;
        const int64_t size = too_long ? op.size + 1 : op.result;
        fact.size = static_cast<uint64_t>(std::clamp<int64_t>(size, 0, XATTR_SIZE_MAX));
    }
}

bool can_give(const Attribute& attribute) {
    constexpr std::string_view kUsers = "user.";
    return attribute.name.starts_with(kUsers) && attribute.name.size() > kUsers.size() &&
           attribute.name.size() <= XATTR_NAME_MAX;
}

bool has_attributes(int fd, const Attributes& attributes) {
    return std::all_of(attributes.begin(), attributes.end(), [&](const Attribute& one) {
        const ssize_t size = ::fgetxattr(fd, one.name.c_str(), nullptr, 0);
        return size < 0 ? errno == EOPNOTSUPP : static_cast<uint64_t>(size) == one.size;
    });
}

int give_attributes(int fd, const Attributes& attributes) {
    int error = 0;
    for (const Attribute& one : attributes) {
        const std::string value(one.size, 'r');
        if (::fsetxattr(fd, one.name.c_str(), value.data(), value.size(), 0) != 0 && error == 0) {
            error = errno;
        }
    }
    return error;
}

}  // namespace reprise

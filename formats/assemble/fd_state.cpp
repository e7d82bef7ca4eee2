// SPDX-License-Identifier: MIT
#include "formats/assemble/fd_state.h"

namespace reprise {
namespace {

bool drop_suffix(std::string_view& text, std::string_view suffix) {
    if (!text.ends_with(suffix)) {
        return false;
    }
    text.remove_suffix(suffix.size());
    return true;
}

}  // namespace

Description parse_description(std::string_view text) {
    Description out;
    if (!text.starts_with('/')) {
        out.type = FileType::anonymous;
        if (text.starts_with("pipe:")) {
            out.kind = HandleKind::pipe;
            out.type = FileType::fifo;
        } else if (text.starts_with("anon_inode:[eventfd]")) {
            out.kind = HandleKind::eventfd;
        } else if (text.starts_with("anon_inode:[eventpoll]")) {
            out.kind = HandleKind::epoll;
        } else if (!text.starts_with("anon_inode:") && !text.starts_with("pidfd:") &&
                   text.find(":[") != std::string_view::npos) {
            out.kind = HandleKind::socket;  // "socket:[1]", "TCP:[...]", "UNIX-STREAM:[1->2]", "NETLINK:[1]"
            out.type = FileType::socket;
        } else {
            out.kind = HandleKind::other;
        }
        return out;
    }
    out.deleted = drop_suffix(text, " (deleted)") || drop_suffix(text, "(deleted)");
    if (text.ends_with('>')) {
        const size_t open = text.rfind('<');
        if (open != std::string_view::npos) {
            const std::string_view device = text.substr(open + 1);
            if (device.starts_with("char ")) {
                out.type = FileType::character;
            }
            if (device.starts_with("block ")) {
                out.type = FileType::block;
            }
            text = text.substr(0, open);
        }
    }
    if (text.starts_with("/memfd:")) {
        out.kind = HandleKind::memfd;
        out.type = FileType::anonymous;
        return out;
    }
    if (text.starts_with("/dev/pts/") || text == "/dev/tty") {
        out.type = FileType::character;
    }
    out.path = text;
    return out;
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// What strace -y and /proc say of a descriptor.
#include <doctest/doctest.h>

#include <string>

#include "formats/assemble/fd_state.h"

namespace reprise::test {

TEST_CASE("descriptions: kind, type and path") {
    struct Row {
        const char* text;
        HandleKind kind;
        FileType type;
        const char* path = "";
        bool deleted = false;
    };
    const auto none = FileType::unknown, anonymous = FileType::anonymous, character = FileType::character;
    const auto file = HandleKind::file, other = HandleKind::other, socket = HandleKind::socket;
    const Row rows[] = {
        {"pipe:[1]", HandleKind::pipe, FileType::fifo},
        {"anon_inode:[eventfd]", HandleKind::eventfd, anonymous},
        {"anon_inode:[eventpoll]", HandleKind::epoll, anonymous},
        {"anon_inode:[timerfd]", other, anonymous},
        {"pidfd:[12]", other, anonymous},
        {"inotify", other, anonymous},
        {"", other, anonymous},
        {"socket:[1]", socket, FileType::socket},
        {"TCP:[127.0.0.1:1->127.0.0.1:2]", socket, FileType::socket},
        {"UNIX-STREAM:[1->2]", socket, FileType::socket},
        {"/d/a", file, none, "/d/a"},
        {"/", file, none, "/"},
        {"/d/a (deleted)", file, none, "/d/a", true},
        {"/d/a(deleted)", file, none, "/d/a", true},
        {"/dev/null<char 1:3>", file, character, "/dev/null"},
        {"/dev/sda<block 8:0>", file, FileType::block, "/dev/sda"},
        {"/dev/x<char 1:3> (deleted)", file, character, "/dev/x", true},
        {"/d/a<b>", file, none, "/d/a"},
        {"/d/a>", file, none, "/d/a>"},
        {"/memfd:x", HandleKind::memfd, anonymous},
        {"/memfd:x (deleted)", HandleKind::memfd, anonymous, "", true},
        {"/dev/pts/3", file, character, "/dev/pts/3"},
        {"/dev/tty", file, character, "/dev/tty"},
        {"/dev/tty1", file, none, "/dev/tty1"},
    };
    for (const Row& row : rows) {
        CAPTURE(row.text);
        const Description found = parse_description(row.text);
        CHECK(handle_kind_name(found.kind) == handle_kind_name(row.kind));
        CHECK(file_type_name(found.type) == file_type_name(row.type));
        CHECK(found.path == row.path);
        CHECK(found.deleted == row.deleted);
    }
}

}  // namespace reprise::test

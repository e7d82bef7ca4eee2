// SPDX-License-Identifier: MIT
// The table of system calls: every row is whole, and every op that calls make is reached.
#include <doctest/doctest.h>

#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "formats/oplog/syscalls.h"

using namespace reprise;

namespace {

constexpr std::string_view kLetters = "f2nrdDpPtLxsoOQFmaANBiMVSHG|KEICcX";

void check_letters(std::string_view letters) {
    CHECK(letters.find_first_not_of(kLetters) == std::string_view::npos);
    CHECK(letters.size() <= 6);
    // Each of them says where one value goes.
    for (const char letter : letters) {
        CAPTURE(letter);
        CHECK((letter == 'x' || letters.find(letter) == letters.rfind(letter)));
    }
}

std::set<std::string> words(const std::string& text) {
    std::istringstream in(text);
    return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace

TEST_CASE("system calls: numbers and names once, letters that are known") {
    std::set<unsigned> numbers;
    std::set<std::string_view> names;
    for (const Syscall& row : all_syscalls()) {
        CAPTURE(row.name);
        CHECK(numbers.insert(row.nr).second);
        CHECK(names.insert(row.name).second);
        CHECK(find_syscall(row.nr) == &row);
        CHECK(find_syscall(row.name) == &row);
        check_letters(row.arguments);
        if (row.strace != kNotImported) {
            check_letters(row.strace);
        }
        CHECK((row.recorded || row.strace != kNotImported));
    }
    for (const Syscall& row : all_syscall_aliases()) {
        CAPTURE(row.name);
        CHECK(names.insert(row.name).second);
        CHECK(find_syscall(row.name) == &row);
        const Syscall* of = find_syscall(row.nr);
        REQUIRE(of != nullptr);
        CHECK(of != &row);
        CHECK((row.kind == of->kind && row.action == of->action && row.flags == of->flags && row.arg == of->arg));
        check_letters(row.arguments);
    }
    CHECK(find_syscall(SYS_getpid) == nullptr);
    CHECK(find_syscall(60000) == nullptr);
    CHECK(find_syscall("getpid") == nullptr);
    CHECK(find_syscall("_llseek")->arguments == "foxa");
}

TEST_CASE("system calls: what a row says fits its op") {
    for (const Syscall& row : all_syscalls()) {
        CAPTURE(row.name);
        const auto has = [&](char letter) { return row.arguments.find(letter) != std::string_view::npos; };
        CHECK((has('d') ? has('p') : true));
        CHECK((has('D') ? has('P') : true));
        if (!row.makes_op) {
            CHECK((row.action != CallAction::op && row.flags == 0 && row.arg == 0 && row.also.empty()));
            continue;
        }
        CHECK(row.action != CallAction::none);
        const OpInfo& op = info(row.kind);
        if (row.action == CallAction::op) {
            CHECK((has('p') ? op.has(Field::file) : true));
            CHECK((has('P') ? op.has(Field::file2) : true));
            CHECK((has('2') ? op.has(Field::handle2) : true));
            CHECK((has('Q') ? op.has(Field::offset2) : true));
            CHECK((has('t') ? op.has(Field::text) : true));
            CHECK((has('i') ? op.has(Field::list) : true));
        }
        CHECK((row.arg != 0) == (row.kind == OpKind::dup || row.kind == OpKind::pipe || row.kind == OpKind::join ||
                                 row.action == CallAction::aio_reap ||
                                 (row.action == CallAction::lock_memory && row.makes_op) ||
                                 (row.kind == OpKind::wait && row.arg != kWaitUnknown)));
        CHECK((row.kind == OpKind::open || row.kind == OpKind::dup) <= row.makes_descriptor);
    }
}

TEST_CASE("system calls: every op that a call can make has one") {
    std::set<std::string> all;
    for (const OpInfo& op : all_ops()) {
        CAPTURE(op.name);
        const std::set<std::string> calls = words(calls_of(op.kind));
        const bool without = op.kind == OpKind::touch || op.kind == OpKind::compute || op.kind == OpKind::idle ||
                             op.kind == OpKind::gpu_submit || op.kind == OpKind::gpu_wait;
        CHECK(calls.empty() == without);
        all.insert(calls.begin(), calls.end());
    }
    // Each word of `also` names an op and so turns up in its column.
    for (const Syscall& row : all_syscalls()) {
        for (const std::string& word : words(std::string(row.also))) {
            CAPTURE(word);
            const size_t colon = word.find(':');
            const auto kind = op_by_name(word.substr(0, colon));
            REQUIRE(kind.has_value());
            CHECK(words(calls_of(*kind))
                      .contains(std::string(row.name) + (colon == std::string::npos ? "" : word.substr(colon))));
        }
        CHECK(all.contains(std::string(row.name)) == row.makes_op);
    }
    CHECK(calls_of(OpKind::fstat) == "newfstatat:AT_EMPTY_PATH fstat");
    CHECK(calls_of(OpKind::uring_complete) == "io_uring_enter");
}

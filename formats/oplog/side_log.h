// SPDX-License-Identifier: MIT
// A log that is written beside something that matters more.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "formats/oplog/oplog.h"
#include "formats/support/error.h"
#include "formats/support/one_line.h"

namespace reprise {

/// Where the log cannot be written it is removed, and the caller goes on without. Not finished, it is removed, too.
class SideLog {
public:
    SideLog() = default;
    explicit SideLog(std::unique_ptr<LogWriter> writer) : writer_(std::move(writer)) {}
    SideLog(const SideLog&) = delete;
    SideLog& operator=(const SideLog&) = delete;
    ~SideLog() { remove(); }

    /// Nothing more is done where this throws Error.
    template <typename Make>
    void open(const Make& make) {
        guarded([&] { writer_ = make(); });
    }
    /// act(LogWriter&), where there is one.
    template <typename Act>
    void write(const Act& act) {
        if (writer_) {
            guarded([&] { act(*writer_); });
        }
    }
    void finish() {
        write([](LogWriter& writer) { writer.finish(); });
    }

    bool open() const { return writer_ != nullptr; }
    /// Why there is no log, in one line; empty: nothing went wrong.
    const std::string& lost() const { return lost_; }

private:
    template <typename Act>
    void guarded(const Act& act) {
        try {
            act();
        } catch (const Error& error) {
            lost_ = in_one_line(error.what());
            remove();
        }
    }
    void remove() {
        if (writer_) {
            writer_->discard();
            writer_.reset();
        }
    }

    std::unique_ptr<LogWriter> writer_;
    std::string lost_;
};

}  // namespace reprise

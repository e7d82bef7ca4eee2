// SPDX-License-Identifier: MIT
// The progress line on standard error.
#include "cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/command.h"
#include "cli/table.h"
#include "cli/units.h"

namespace reprise::cli {

namespace {

std::size_t terminal_width(int fd) {
    winsize size{};
    return ::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// At most `width` code points.
std::string cut(const std::string& text, std::size_t width) {
    std::size_t columns = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80 && ++columns > width) {
            return text.substr(0, i);
        }
    }
    return text;
}

}  // namespace

std::string progress_line(std::string_view label, std::uint64_t done, std::uint64_t total, double elapsed_seconds,
                          ProgressUnit unit, std::string_view text, std::size_t width) {
    const bool bytes = unit == ProgressUnit::bytes;
    const auto amount = [&](std::uint64_t n) { return bytes ? format_bytes(n) : format_count(n); };
    std::string line(label);
    line += "  " + amount(done);
    if (total > 0) {
        line += " of " + amount(total) + "  " + format_share(static_cast<double>(done) / static_cast<double>(total));
    }
    if (elapsed_seconds > 0 && done > 0) {
        const double rate = static_cast<double>(done) / elapsed_seconds;
        line += "  " + (bytes ? format_rate(rate) : format_count_rate(rate, ""));
        if (total > done) {
            const double left = static_cast<double>(total - done) / rate * 1e9;
            if (left < 1e18) {
                line += "  " + format_duration(static_cast<std::int64_t>(left)) + " left";
            }
        }
    }
    if (!text.empty()) {
        line += "  " + std::string(text);
    }
    return cut(printable(line), width);
}

Progress::Progress(std::string label, ProgressUnit unit) : Progress(std::move(label), unit, Settings{}) {}

Progress::Progress(std::string label, ProgressUnit unit, Settings settings)
    : label_(std::move(label)),
      unit_(unit),
      settings_(settings),
      start_(Clock::now()),
      active_(!quiet() && ::isatty(settings.fd) == 1),
      next_((start_ + settings.delay).time_since_epoch().count()) {}

Progress::~Progress() { finish(); }

void Progress::update(std::uint64_t done, std::uint64_t total, std::string_view text) {
    if (!active()) {
        return;
    }
    const auto now = Clock::now();
    Clock::rep due = next_.load(std::memory_order_relaxed);
    const auto later = (now + settings_.period).time_since_epoch().count();
    // The thread that moves the due time draws; the others return.
    if (now.time_since_epoch().count() < due || !next_.compare_exchange_strong(due, later)) {
        return;
    }
    const std::chrono::duration<double> elapsed = now - start_;
    draw(progress_line(label_, done, total, elapsed.count(), unit_, text, terminal_width(settings_.fd) - 1));
}

void Progress::draw(std::string_view line) {
    const std::lock_guard lock(mutex_);
    if (!active()) {
        return;
    }
    const std::string out = "\r" + std::string(line) + "\x1b[K";
    // Failing to write a progress line is not an error.
    shown_ = ::write(settings_.fd, out.data(), out.size()) > 0 || shown_;
}

void Progress::finish() {
    const std::lock_guard lock(mutex_);
    active_ = false;
    if (shown_) {
        static constexpr std::string_view kClear = "\r\x1b[K";
        shown_ = ::write(settings_.fd, kClear.data(), kClear.size()) < 0;
    }
}

}  // namespace reprise::cli

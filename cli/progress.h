// SPDX-License-Identifier: MIT
// The progress line on standard error.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace reprise::cli {

enum class ProgressUnit { count, bytes };

/// The line itself, cut to `width` columns: label, share done, rate, time left,
/// then `text`. total == 0: unknown. Pure, for tests.
std::string progress_line(std::string_view label, std::uint64_t done, std::uint64_t total, double elapsed_seconds,
                          ProgressUnit unit, std::string_view text, std::size_t width);

/// Drawn only on a terminal, only after some time, and cleared at the end.
/// update() may be called from any thread and often: it costs one clock read
/// until the next drawing is due.
class Progress {
public:
    struct Settings {
        int fd = 2;
        std::chrono::milliseconds delay{2000};  ///< silence before the first drawing
        std::chrono::milliseconds period{200};  ///< between drawings
    };

    explicit Progress(std::string label, ProgressUnit unit = ProgressUnit::count);
    Progress(std::string label, ProgressUnit unit, Settings settings);
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// `text` is appended, e.g. the lag of a replay.
    void update(std::uint64_t done, std::uint64_t total, std::string_view text = {});
    /// Clears the line; later updates do nothing. Call before printing results.
    void finish();
    /// Whether it may ever draw; ask before making costly text.
    [[nodiscard]] bool active() const { return active_.load(std::memory_order_relaxed); }

private:
    using Clock = std::chrono::steady_clock;
    void draw(std::string_view line);

    const std::string label_;
    const ProgressUnit unit_;
    const Settings settings_;
    const Clock::time_point start_;
    std::atomic<bool> active_;
    std::atomic<Clock::rep> next_;  ///< when the next drawing is due
    std::mutex mutex_;              ///< guards the terminal and shown_
    bool shown_ = false;
};

}  // namespace reprise::cli

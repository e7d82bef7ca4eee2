// SPDX-License-Identifier: MIT
#include "formats/import/profile/nsys_events.h"

#include <sqlite3.h>

#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "formats/support/error.h"

namespace reprise::nsys {
namespace {

class Database {
public:
    explicit Database(const std::filesystem::path& path) : path_(path.native()) {
        sqlite3* opened = nullptr;
        const int rc = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
        db_.reset(opened);
        if (rc != SQLITE_OK) {
            fail();
        }
        // A file of others: nothing in it is run.
        sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
        sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
        sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    }

    [[noreturn]] void fail() const {
        throw bad_input(path_, "cannot be read as an SQLite database: " + escape_line(sqlite3_errmsg(db_.get())),
                        "export it again: nsys export --type sqlite report.nsys-rep");
    }

    // Columns of a plain table; empty: there is none of that name.
    std::set<std::string> columns(const std::string& table) const {
        std::set<std::string> out;
        bool plain = false;
        each("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = '" + table + "'",
             [&](sqlite3_stmt*) { plain = true; });
        if (plain) {
            each("PRAGMA table_info(" + table + ")", [&](sqlite3_stmt* row) { out.insert(text(row, 1)); });
        }
        return out;
    }

    template <class Visit>
    void each(const std::string& query, Visit visit) const {
        sqlite3_stmt* prepared = nullptr;
        if (sqlite3_prepare_v2(db_.get(), query.c_str(), -1, &prepared, nullptr) != SQLITE_OK) {
            fail();
        }
        const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(prepared, sqlite3_finalize);
        int rc = 0;
        while ((rc = sqlite3_step(prepared)) == SQLITE_ROW) {
            visit(prepared);
        }
        if (rc != SQLITE_DONE) {
            fail();
        }
    }

    static std::string text(sqlite3_stmt* row, int column) {
        const auto* bytes = sqlite3_column_text(row, column);
        if (!bytes) {
            return {};
        }
        return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(sqlite3_column_bytes(row, column))};
    }

private:
    struct Close {
        void operator()(sqlite3* db) const { sqlite3_close(db); }
    };
    std::string path_;
    std::unique_ptr<sqlite3, Close> db_;
};

// The parts of nsys' global identifiers.
int32_t pid_of(int64_t global) { return static_cast<int32_t>(global >> 24 & 0xffffff); }
int32_t tid_of(int64_t global) { return static_cast<int32_t>(global & 0xffffff); }

std::optional<int64_t> step_number(std::string_view text) {
    for (const std::string_view prefix : {"ProfilerStep#", "step ", "step#", "step_", "Step ", "step"}) {
        if (!text.starts_with(prefix)) {
            continue;
        }
        const std::string_view digits = text.substr(prefix.size());
        int64_t number = 0;
        const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
        if (error == std::errc() && rest == digits.data() + digits.size()) {
            return number;
        }
    }
    return std::nullopt;
}

// Calls that do nothing but wait.
bool waits(std::string_view name) {
    constexpr std::array kWaits{"poll",
                                "ppoll",
                                "select",
                                "pselect",
                                "epoll_wait",
                                "epoll_pwait",
                                "nanosleep",
                                "clock_nanosleep",
                                "usleep",
                                "sleep",
                                "sem_wait",
                                "sem_timedwait",
                                "pthread_cond_wait",
                                "pthread_cond_timedwait",
                                "pthread_join",
                                "futex",
                                "wait4",
                                "waitpid"};
    for (const std::string_view each : kWaits) {
        if (name == each) {
            return true;
        }
    }
    return false;
}

class Reader {
public:
    Reader(const std::filesystem::path& path, kineto::Events& into) : db_(path), path_(path), into_(into) {}

    void run() {
        const auto strings = db_.columns("StringIds");
        if (!strings.contains("id") || !strings.contains("value")) {
            throw bad_input(path_.native(),
                            "is an SQLite database, but not an export of Nsight Systems: no table StringIds",
                            "export one: nsys export --type sqlite report.nsys-rep");
        }
        db_.each("SELECT id, value FROM StringIds", [&](sqlite3_stmt* row) {
            names_[sqlite3_column_int64(row, 0)] = into_.name_of(plain(Database::text(row, 1)));
        });
        if (db_.columns("TARGET_INFO_SESSION_START_TIME").contains("utcEpochNs")) {
            db_.each("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME",
                     [&](sqlite3_stmt* row) { epoch_ = sqlite3_column_int64(row, 0); });
        }
        const auto meta = db_.columns("META_DATA_EXPORT");
        if (meta.contains("name") && meta.contains("value")) {
            db_.each("SELECT value FROM META_DATA_EXPORT WHERE name = 'EXPORT_HOST'",
                     [&](sqlite3_stmt* row) { into_.host = Database::text(row, 0); });
        }
        work("CUPTI_ACTIVITY_KIND_KERNEL", "");
        work("CUPTI_ACTIVITY_KIND_MEMCPY", "memcpy");
        work("CUPTI_ACTIVITY_KIND_MEMSET", "memset");
        synchronisations();
        calls();
        steps();
        system_calls();
    }

private:
    // "cudaLaunchKernel_v7000" is the name with the version of its interface.
    static std::string plain(std::string name) {
        const size_t at = name.rfind("_v");
        if (at != std::string::npos && at > 0 && at + 2 < name.size() && name.starts_with("cu") &&
            name.find_first_not_of("0123456789", at + 2) == std::string::npos) {
            name.resize(at);
        }
        return name;
    }

    // A column, or its default where this version of nsys does not have it.
    static std::string column(const std::set<std::string>& columns, const char* name, const char* otherwise) {
        return columns.contains(name) ? std::string("\"") + name + '"' : otherwise;
    }

    // Calls visit(row) for rows with the columns asked for, `start` and `end` first; counts those that cannot be.
    template <class Visit>
    void table(const std::string& name, const std::set<std::string>& columns, const std::string& more, Visit visit) {
        if (!columns.contains("start") || !columns.contains("end")) {
            return;
        }
        uint64_t number = 0;
        db_.each("SELECT start, \"end\", " + more + " FROM " + name + " ORDER BY start", [&](sqlite3_stmt* row) {
            ++into_.events;
            ++number;
            kineto::Span span;
            int64_t end = 0;
            const bool bad = sqlite3_column_type(row, 0) != SQLITE_INTEGER ||
                             sqlite3_column_type(row, 1) != SQLITE_INTEGER ||
                             __builtin_add_overflow(sqlite3_column_int64(row, 0), epoch_, &span.begin) ||
                             __builtin_add_overflow(sqlite3_column_int64(row, 1), epoch_, &end) || end < span.begin ||
                             __builtin_sub_overflow(end, span.begin, &span.duration);
            if (bad) {
                if (into_.malformed++ == 0) {
                    into_.first_malformed = "row " + std::to_string(number) + " of " + name;
                }
                return;
            }
            visit(row, span);
        });
    }

    // Calls of several processes share numbers.
    static uint64_t correlation(sqlite3_stmt* row, int column, int32_t pid) {
        const auto id = static_cast<uint64_t>(sqlite3_column_int64(row, column)) & 0xffffffff;
        return id == 0 ? 0 : id | static_cast<uint64_t>(static_cast<uint32_t>(pid)) << 32;
    }

    void work(const std::string& name, const char* what) {
        const auto columns = db_.columns(name);
        const std::string title = columns.contains("shortName") ? "shortName" : column(columns, "demangledName", "0");
        table(name, columns,
              column(columns, "deviceId", "0") + ", " + column(columns, "streamId", "0") + ", " +
                  column(columns, "correlationId", "0") + ", " + column(columns, "globalPid", "0") + ", " + title,
              [&](sqlite3_stmt* row, const kineto::Span& span) {
                  kineto::Work one;
                  static_cast<kineto::Span&>(one) = span;
                  one.device = sqlite3_column_int64(row, 2);
                  one.stream = sqlite3_column_int64(row, 3);
                  constexpr int64_t kMostIds = 1'000'000;
                  if (one.device < 0 || one.device > kMostIds || one.stream < 0 || one.stream > kMostIds) {
                      if (into_.malformed++ == 0) {
                          into_.first_malformed = "a device or stream of " + name;
                      }
                      return;
                  }
                  one.correlation = correlation(row, 4, pid_of(sqlite3_column_int64(row, 5)));
                  one.name = *what ? into_.name_of(what) : name_of(sqlite3_column_int64(row, 6));
                  into_.work.push_back(one);
              });
    }

    void synchronisations() {
        const std::string name = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
        const auto columns = db_.columns(name);
        table(name, columns,
              column(columns, "deviceId", "-1") + ", " + column(columns, "streamId", "-1") + ", " +
                  column(columns, "correlationId", "0") + ", " + column(columns, "globalPid", "0") + ", " +
                  column(columns, "syncType", "0"),
              [&](sqlite3_stmt* row, const kineto::Span&) {
                  constexpr int64_t kStream = 3;
                  const bool one_stream = sqlite3_column_int64(row, 6) == kStream;
                  synchronised_[correlation(row, 4, pid_of(sqlite3_column_int64(row, 5)))] = {
                      sqlite3_column_int64(row, 2), one_stream ? sqlite3_column_int64(row, 3) : -1};
              });
    }

    void calls() {
        const std::string name = "CUPTI_ACTIVITY_KIND_RUNTIME";
        const auto columns = db_.columns(name);
        table(name, columns,
              column(columns, "globalTid", "0") + ", " + column(columns, "correlationId", "0") + ", " +
                  column(columns, "nameId", "0"),
              [&](sqlite3_stmt* row, const kineto::Span& span) {
                  kineto::HostCall call;
                  static_cast<kineto::Span&>(call) = span;
                  call.pid = pid_of(sqlite3_column_int64(row, 2));
                  call.tid = tid_of(sqlite3_column_int64(row, 2));
                  call.correlation = correlation(row, 3, call.pid);
                  call.name = name_of(sqlite3_column_int64(row, 4));
                  if (const auto it = synchronised_.find(call.correlation);
                      call.correlation && it != synchronised_.end()) {
                      call.device = it->second.first;
                      call.stream = it->second.second;
                  }
                  into_.calls.push_back(call);
              });
    }

    void steps() {
        const std::string name = "NVTX_EVENTS";
        const auto columns = db_.columns(name);
        table(name, columns,
              column(columns, "globalTid", "0") + ", " + column(columns, "text", "NULL") + ", " +
                  column(columns, "textId", "0"),
              [&](sqlite3_stmt* row, const kineto::Span& span) {
                  std::string title = Database::text(row, 3);
                  if (title.empty()) {
                      title = into_.names[name_of(sqlite3_column_int64(row, 4))];
                  }
                  const auto number = step_number(title);
                  if (!number) {
                      return;
                  }
                  kineto::Step step;
                  static_cast<kineto::Span&>(step) = span;
                  step.pid = pid_of(sqlite3_column_int64(row, 2));
                  step.tid = tid_of(sqlite3_column_int64(row, 2));
                  step.number = *number;
                  into_.steps.push_back(step);
              });
    }

    void system_calls() {
        const std::string name = "OSRT_API";
        const auto columns = db_.columns(name);
        table(name, columns,
              column(columns, "globalTid", "0") + ", " + column(columns, "nameId", "0") + ", " +
                  column(columns, "nestingLevel", "0"),
              [&](sqlite3_stmt* row, const kineto::Span& span) {
                  if (sqlite3_column_int64(row, 4) > 0) {
                      return;  // inside another one
                  }
                  const uint32_t title = name_of(sqlite3_column_int64(row, 3));
                  if (!waits(into_.names[title])) {
                      ++into_.os_calls;
                      return;
                  }
                  kineto::HostCall call;
                  static_cast<kineto::Span&>(call) = span;
                  call.pid = pid_of(sqlite3_column_int64(row, 2));
                  call.tid = tid_of(sqlite3_column_int64(row, 2));
                  call.name = title;
                  into_.blocked.push_back(call);
              });
    }

    uint32_t name_of(int64_t id) const {
        const auto it = names_.find(id);
        return it == names_.end() ? 0 : it->second;
    }

    Database db_;
    const std::filesystem::path& path_;
    kineto::Events& into_;
    int64_t epoch_ = 0;
    std::unordered_map<int64_t, uint32_t> names_;
    std::unordered_map<uint64_t, std::pair<int64_t, int64_t>> synchronised_;  // by correlation: device and stream
};

}  // namespace

void read_events(const std::filesystem::path& path, kineto::Events& into) { Reader(path, into).run(); }

}  // namespace reprise::nsys

// SPDX-License-Identifier: MIT
// Exports of Nsight Systems, made from SQL.
#pragma once

#include <doctest/doctest.h>
#include <sqlite3.h>

#include <filesystem>
#include <string>

namespace reprise::test {

inline void write_sqlite(const std::filesystem::path& path, const std::string& sql) {
    sqlite3* db = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
    char* message = nullptr;
    const int rc = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &message);
    INFO(std::string(message ? message : ""));
    REQUIRE(rc == SQLITE_OK);
    sqlite3_close(db);
}

/// The tables that the reader looks at, empty but for names: 1 gemm, 2 cudaLaunchKernel_v7000, 3
/// cudaDeviceSynchronize_v3020, 4 cudaStreamSynchronize_v3020, 5 poll, 6 read, 7 ProfilerStep#12. The session began at
/// 1 s.
inline std::string nsys_tables() {
    return R"(
CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1,'gemm'),(2,'cudaLaunchKernel_v7000'),(3,'cudaDeviceSynchronize_v3020'),
  (4,'cudaStreamSynchronize_v3020'),(5,'poll'),(6,'read'),(7,'ProfilerStep#12');
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT);
INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1000000000,'','');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, bytes INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER NOT NULL, "end" INTEGER NOT NULL, deviceId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, "end" INTEGER NOT NULL, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, "end" INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, textId INTEGER);
CREATE TABLE OSRT_API (start INTEGER NOT NULL, "end" INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER, nestingLevel INTEGER);
)";
}

/// The way nsys names a thread.
inline std::string nsys_tid(int pid, int tid) { return std::to_string((int64_t{pid} << 24) + tid); }

}  // namespace reprise::test

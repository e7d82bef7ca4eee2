// SPDX-License-Identifier: MIT
// Sections of the op log that carry tables: rows added or changed since the last such section.
#pragma once

#include "formats/oplog/oplog.h"
#include "formats/oplog/tables.h"
#include "formats/support/bytes.h"
#include "formats/support/compress.h"

namespace reprise {

enum class SectionType : uint8_t {
    header = 1,
    strings,
    files,
    handles,
    processes,
    tasks,
    counters,
    ops,
    index,
    derived
};
std::string_view section_name(SectionType type);

Bytes encode_header(const Header& header);
Header decode_header(ByteView bytes);

/// Strings from id `first` on.
Bytes encode_strings(const StringTable& strings, size_t first, Compressor& compressor);
void decode_strings(ByteView bytes, StringTable& strings, Decompressor& decompressor);

/// The rows with the given ids (ascending). Decoding grows the table by exactly the new ids or replaces old rows.
Bytes encode_files(const Tables& tables, std::span<const uint32_t> ids, Compressor& compressor);
Bytes encode_handles(const Tables& tables, std::span<const uint32_t> ids, Compressor& compressor);
Bytes encode_processes(const Tables& tables, std::span<const uint32_t> ids, Compressor& compressor);
Bytes encode_tasks(const Tables& tables, std::span<const uint32_t> ids, Compressor& compressor);
void decode_files(ByteView bytes, Tables& tables, Decompressor& decompressor);
void decode_handles(ByteView bytes, Tables& tables, Decompressor& decompressor);
void decode_processes(ByteView bytes, Tables& tables, Decompressor& decompressor);
void decode_tasks(ByteView bytes, Tables& tables, Decompressor& decompressor);

Bytes encode_counters(const Tables& tables);
void decode_counters(ByteView bytes, Tables& tables);

Bytes encode_derived(const Derived& derived, Compressor& compressor);
Derived decode_derived(ByteView bytes, Decompressor& decompressor);
/// Of a derived section.
std::string_view derived_name(ByteView bytes);

/// Ids in the rows that point into other tables, checked once all sections are read. Throws Corrupt.
void check_references(const Tables& tables);

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Any bytes as a raw recording, container and all, and any records in a good container: an error or a log that reads
// back, never a crash. The first byte chooses.
#include <cstring>
#include <vector>

#include "formats/raw/log.h"
#include "tests/fuzz/fuzz_support.h"

namespace {

using namespace reprise;

// The input as a source of small numbers.
class Bytes8 {
public:
    Bytes8(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}
    bool empty() const { return at_ == end_; }
    uint8_t next() { return empty() ? 0 : *at_++; }

private:
    const uint8_t *at_, *end_;
};

// A record of that type whose words are mostly small, so that descriptors, tasks and addresses meet again.
void add_record(Bytes8& in, uint64_t& now, std::vector<uint8_t>& out) {
    const uint8_t type = static_cast<uint8_t>(RAW_CALL + in.next() % (RAW_GPU - RAW_CALL + 1));
    std::vector<uint8_t> record(raw_struct_bytes(type));
    for (size_t i = sizeof(raw_head); i + 8 <= record.size(); i += 8) {
        const uint8_t how = in.next();
        uint64_t value = how & 15;
        if (how & 16) {
            value = now - in.next();
        }
        if (how & 32) {
            value = uint64_t{in.next()} << 12;
        }
        if (how & 64) {
            value = ~value;
        }
        std::memcpy(record.data() + i, &value, 8);
    }
    for (uint8_t parts = in.next() % 4; parts > 0; --parts) {
        raw_part part{};
        part.type = static_cast<raw_u16>(1 + in.next() % RAW_PART_EVENT);
        part.which = in.next() % 20;
        size_t bytes = 0;
        switch (part.type) {
            case RAW_PART_FD: bytes = sizeof(raw_fd); break;
            case RAW_PART_STAT: bytes = sizeof(raw_stat); break;
            case RAW_PART_IOCB: bytes = sizeof(raw_iocb); break;
            case RAW_PART_EVENT: bytes = sizeof(raw_aio_event); break;
            default: bytes = size_t{in.next()} % 9 * 8; break;
        }
        part.size = static_cast<raw_u16>(sizeof part + bytes);
        const bool numbers = part.type == RAW_PART_LIST || part.type == RAW_PART_VALUES;
        part.length = static_cast<raw_u16>(numbers ? bytes / 8 : bytes);
        const size_t at = record.size();
        record.resize(at + part.size);
        std::memcpy(record.data() + at, &part, sizeof part);
        for (size_t i = 0; i < bytes; ++i) {
            const bool text = part.type == RAW_PART_PATH || part.type == RAW_PART_STRING;
            record[at + sizeof part + i] = text ? static_cast<uint8_t>("/ab."[in.next() & 3]) : i % 4 ? 0 : in.next();
        }
    }
    raw_head head{};
    head.size = static_cast<raw_u16>(record.size());
    head.type = type;
    head.flags = in.next() & 7;
    head.sequence = in.next();
    head.pid = 1 + in.next() % 3;
    head.tid = 1 + in.next() % 5;
    now += in.next() * uint64_t{100};
    head.time = now;
    std::memcpy(record.data(), &head, sizeof head);
    out.insert(out.end(), record.begin(), record.end());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) {
        return 0;
    }
    if (data[0] & 1) {
        return fuzz::import_bytes("raw", data + 1, size - 1);
    }
    Bytes8 in(data + 1, size - 1);
    std::vector<uint8_t> records;
    uint64_t now = 1'000'000'000;
    while (!in.empty() && records.size() < 60'000) {
        add_record(in, now, records);
    }
    const std::filesystem::path raw = fuzz::scratch() / "in.raw";
    {
        RawWriter::Options options;
        options.compress = false;
        RawWriter writer(raw, "{\"command\":\"fuzz\"}", options);
        if (raw_records_whole(records)) {
            writer.append(records);
        }
        writer.finish();
    }
    const std::filesystem::path inputs[] = {raw};
    const std::filesystem::path output = fuzz::scratch() / "out.oplog";
    ImportOptions options;
    options.writer.sync = false;
    options.writer.memory_bytes = size_t{1} << 20;
    find_importer(inputs, "raw").import(inputs, output, options);
    fuzz::read_all(LogReader(output), true);
    std::filesystem::remove(output);
    return 0;
}

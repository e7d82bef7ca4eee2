// SPDX-License-Identifier: MIT
// What can be left out, and what to do where nothing can be recorded. Built everywhere.
#include "capture/capture.h"

namespace reprise {

const std::vector<CaptureGroup>& capture_groups() {
    static const std::vector<CaptureGroup> groups = {
        {"faults", "page faults on mapped files, so that their pages are touched again"},
        {"uring", "requests of io_uring"},
        {"causes", "when and why tasks were off the processor, and who woke them"},
        {"pagecache", "pages of recorded files added to and evicted from the page cache"},
        {"block", "requests of block devices"},
        {"memory", "memory besides files that each process holds, every 100 ms"},
        {"network", "TCP connections: addresses, bytes, retransmits, round-trip times"},
        {"cufile", "calls of libcufile, whose data passes no system call (GPUDirect)"},
        {"pressure", "CPU, memory and I/O pressure, every 100 ms"},
    };
    return groups;
}

std::string capture_fallback() {
    return "fallback: strace -f -ttt -T -yy -o job.strace CMD, then: reprise import job.strace -o job.oplog";
}

}  // namespace reprise

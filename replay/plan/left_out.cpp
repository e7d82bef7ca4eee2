// SPDX-License-Identifier: MIT
#include "replay/plan/left_out.h"

namespace reprise {

std::string_view left_out_name(LeftOut reason) {
    switch (reason) {
        case LeftOut::none: return "performed";
        case LeftOut::filter: return "filter";
        case LeftOut::no_place: return "no_place";
        case LeftOut::not_open: return "not_open";
        case LeftOut::not_a_file: return "not_a_file";
        case LeftOut::read_only: return "read_only";
        case LeftOut::device_node: return "device_node";
        case LeftOut::unsupported: return "unsupported";
        case LeftOut::received: return "received";
        case LeftOut::stopped: return "stopped";
    }
    return "?";
}

std::string_view left_out_meaning(LeftOut reason) {
    switch (reason) {
        case LeftOut::none: return "performed";
        case LeftOut::filter: return "files that the filter leaves out";
        case LeftOut::no_place: return "paths that have no place below the root";
        case LeftOut::not_open: return "files whose open failed in this run";
        case LeftOut::not_a_file: return "pipes, sockets and the like, which the replay does not make";
        case LeftOut::read_only: return "would alter files (--read-only)";
        case LeftOut::device_node: return "device nodes, which the replay never uses";
        case LeftOut::unsupported: return "no safe way to perform them";
        case LeftOut::received: return "descriptors that came over a socket from nobody known";
        case LeftOut::stopped: return "not reached before the run was ended";
    }
    return "?";
}

}  // namespace reprise

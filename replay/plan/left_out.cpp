// SPDX-License-Identifier: MIT
#include "replay/plan/left_out.h"

namespace reprise {

Count left_out_counter(LeftOut reason) {
    switch (reason) {
        case LeftOut::none: break;  // performed
        case LeftOut::filter: return Count::left_out_filter;
        case LeftOut::no_place: return Count::left_out_no_place;
        case LeftOut::not_open: return Count::left_out_not_open;
        case LeftOut::not_a_file: return Count::left_out_not_a_file;
        case LeftOut::read_only: return Count::left_out_read_only;
        case LeftOut::device_node: return Count::left_out_device_node;
        case LeftOut::unsupported: return Count::left_out_unsupported;
        case LeftOut::received: return Count::left_out_received;
        case LeftOut::stopped: return Count::left_out_stopped;
        case LeftOut::refused: return Count::left_out_refused;
        case LeftOut::not_permitted: return Count::left_out_not_permitted;
    }
    return Count::left_out_unsupported;
}

std::string_view left_out_name(LeftOut reason) {
    constexpr std::string_view kPrefix = "left_out_";
    return reason == LeftOut::none ? "performed" : info(left_out_counter(reason)).name.substr(kPrefix.size());
}

std::string_view left_out_meaning(LeftOut reason) {
    constexpr std::string_view kPrefix = "ops not performed: ";
    return reason == LeftOut::none ? "performed" : info(left_out_counter(reason)).meaning.substr(kPrefix.size());
}

}  // namespace reprise

// SPDX-License-Identifier: MIT
// Any bytes as a filter's text and as words of the command line: what is accepted says itself again.
#include <string>
#include <string_view>
#include <vector>

#include "formats/oplog/op_filter.h"
#include "formats/support/error.h"
#include "tests/fuzz/fuzz_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace reprise;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        const OpFilter filter = OpFilter::parse(text);
        fuzz::require(OpFilter::parse(filter.to_string()) == filter, "parse(to_string()) is the filter");
    } catch (const Error&) {
    }
    std::vector<std::string> words[2];
    size_t begin = 0;
    for (size_t i = 0; i <= size; ++i) {
        if (i == size || data[i] == '\n') {
            words[(i - begin) & 1].emplace_back(text.substr(begin, i - begin));
            begin = i + 1;
        }
    }
    try {
        const OpFilter filter = OpFilter::from_words(words[0], words[1]);
        fuzz::require(OpFilter::parse(filter.to_string()) == filter, "parse(to_string()) is the filter");
    } catch (const Error&) {
    }
    return 0;
}

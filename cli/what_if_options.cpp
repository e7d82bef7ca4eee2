// SPDX-License-Identifier: MIT
#include "cli/what_if_options.h"

#include <algorithm>
#include <cstdint>

#include "calibrate/mounted.h"
#include "cli/units.h"
#include "formats/oplog/header_facts.h"
#include "formats/support/error.h"

namespace reprise::cli {
namespace {

double number_of(const WhatIfFactor& factor, const std::string& word) {
    size_t used = 0;
    double value = 0.0;
    try {
        value = std::stod(word, &used);
    } catch (const std::exception&) {
        used = 0;
    }
    if (used == 0 || used != word.size() || !valid_factor(value)) {
        throw usage_error(wrong_factor(factor, "'" + escape_line(word) + "'"), factor.hint);
    }
    return value;
}

bool has_accelerators(const LogReader& log) {
    OpBlock block;
    for (const BlockInfo& info : log.blocks()) {
        log.decode(info, block);
        const auto* end = block.kind + block.count();
        if (std::find(block.kind, end, static_cast<uint8_t>(OpKind::gpu_submit)) != end) {
            return true;
        }
    }
    return false;
}

}  // namespace

void add_what_if_options(po::options_description& add, bool variants) {
    for (const WhatIfFactor& factor : kWhatIfFactors) {
        add.add_options()(std::string(factor.option).c_str(),
                          po::value<std::string>()->default_value(std::string(factor.fallback))->value_name("X"),
                          std::string(factor.help).c_str());
    }
    for (const WhatIfAccess& access : kWhatIfAccesses) {
        const std::string option(access.option), help(access.help);
        if (access.value.empty()) {
            add.add_options()(option.c_str(), help.c_str());
            continue;
        }
        auto* const value = po::value<std::string>()->value_name(std::string(access.value));
        if (!access.given.empty()) {
            value->implicit_value(std::string(access.given), "");
        }
        add.add_options()(option.c_str(), value, help.c_str());
    }
    if (!variants) {
        return;
    }
    const WhatIf none;
    for (const WhatIfVariant& variant : kWhatIfVariants) {
        auto* const value = po::value<std::string>()->value_name(std::string(variant.value));
        if (!(none.*variant.member).empty()) {
            value->default_value(none.*variant.member);
        }
        add.add_options()(std::string(variant.option).c_str(), value, std::string(variant.help).c_str());
    }
}

WhatIf what_if_of(const po::variables_map& values) {
    WhatIf what_if;
    for (const WhatIfFactor& factor : kWhatIfFactors) {
        if (factor.fallback != "auto" || !is_auto(values, factor.option)) {
            what_if.speeds.*factor.member = number_of(factor, values[std::string(factor.option)].as<std::string>());
        }
    }
    for (const WhatIfVariant& variant : kWhatIfVariants) {
        if (values.count(std::string(variant.option)) != 0) {
            what_if.*variant.member = values[std::string(variant.option)].as<std::string>();
        }
    }
    for (const WhatIfAccess& access : kWhatIfAccesses) {
        if (const std::string option(access.option); values.count(option) != 0) {
            what_if.*access.member = access.value.empty() ? "yes" : values[option].as<std::string>();
        }
    }
    return what_if;
}

std::string what_if_words(const WhatIf& what_if, const LogReader& log) {
    const WhatIf none;
    std::string words = to_string(what_if);
    const bool scaled_here = what_if.scale != none.scale || what_if.epochs != none.epochs;
    if (const auto scaled = read_fact(log.header(), fact::scale); scaled && !scaled_here) {
        words += (words.empty() ? "" : " ") + ("a log made with " + *scaled);
    }
    return words;
}

AccessChange access_of(const WhatIf& what_if) {
    const auto size_of = [](const std::string& text, const std::string& option, const char* hint) {
        constexpr uint64_t kLeast = 4096, kMost = uint64_t{1} << 30;
        const uint64_t bytes = text.empty() ? 0 : parse_bytes(text, option);
        if (!text.empty() && (bytes < kLeast || bytes > kMost)) {
            throw usage_error(option + " is '" + escape_line(text) + "', expected a size from 4KiB to 1GiB", hint);
        }
        return static_cast<int64_t>(bytes);
    };
    AccessChange change;
    change.direct = !what_if.direct.empty();
    change.sync_writes = !what_if.sync_writes.empty();
    change.read_as_mmap = !what_if.read_as_mmap.empty();
    change.prefetch = !what_if.prefetch.empty();
    change.mmap_as_read = size_of(what_if.mmap_as_read, "--mmap-as-read", "1MiB is what many programs read at once");
    change.read_ahead = size_of(what_if.read_ahead, "--read-ahead", "Linux reads 128KiB ahead of most devices");
    const auto contradict = [](const char* a, const char* b, const char* why) {
        throw usage_error(std::string(a) + " contradicts " + b + ": " + why, "leave out one of them");
    };
    if (change.read_as_mmap && change.mmap_as_read != 0) {
        contradict("--read-as-mmap", "--mmap-as-read", "each undoes what the other does");
    }
    if (change.read_as_mmap && change.direct) {
        contradict("--read-as-mmap", "--direct", "page faults go through the page cache");
    }
    if (change.prefetch && change.direct) {
        contradict("--prefetch", "--direct", "direct reads pass the page cache by");
    }
    return change;
}

void check_read_ahead(const AccessChange& change, const std::string& root) {
    const ReadSizes here = read_sizes(root);
    if (change.read_ahead == 0 || here.read_ahead == change.read_ahead) {
        return;
    }
    const std::string what =
        "--read-ahead: a replay does not change it, as it belongs to the mount and not to a process";
    if (here.setting.empty()) {
        throw usage_error(what + ", and " + escape_line(root) + " is on one that has none", "leave it out");
    }
    throw usage_error(
        what + "; files of " + escape_line(root) + " are read " + format_bytes(here.read_ahead) + " ahead",
        "as root: echo " + std::to_string(change.read_ahead >> 10) + " > " + here.setting +
            ", then replay, then echo " + std::to_string(here.read_ahead >> 10) + " > " + here.setting);
}

void check_has_accelerators(const LogReader& log, const WhatIf& what_if) {
    const char* option = !what_if.gpu_model.empty() ? "--gpu-model" : what_if.speeds.gpu != 1.0 ? "--gpu-speed" : "";
    if (*option != '\0' && !has_accelerators(log)) {
        throw usage_error(std::string(option) + ": " + escape_line(log.path().string()) + " has no accelerator work",
                          "merge a profile of the job into it: reprise graft");
    }
}

bool is_auto(const po::variables_map& values, std::string_view option) {
    return values[std::string(option)].as<std::string>() == "auto";
}

void put_what_if(Json& json, const WhatIf& what_if, bool variants) {
    for (const WhatIfFactor& factor : kWhatIfFactors) {
        json[std::string(factor.key)] = what_if.speeds.*factor.member;
    }
    for (const WhatIfAccess& access : kWhatIfAccesses) {
        const std::string& asked = what_if.*access.member;
        json[std::string(access.key)] = access.value.empty() ? Json(!asked.empty())
                                        : asked.empty()      ? Json(nullptr)
                                                             : Json(parse_bytes(asked, access.option));
    }
    for (const WhatIfVariant& variant : kWhatIfVariants) {
        if (variants) {
            const std::string& asked = what_if.*variant.member;
            json[std::string(variant.key)] = asked.empty() ? Json(nullptr) : Json(asked);
        }
    }
}

}  // namespace reprise::cli

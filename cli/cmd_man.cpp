// SPDX-License-Identifier: MIT
// `reprise __man`: the man page, written by the build.
#include <iostream>

#include "cli/command.h"
#include "cli/help.h"

namespace reprise::cli {
namespace {

int run(const po::variables_map&) {
    std::cout << man_page();
    return 0;
}

const Registration registration{{
    .name = "__man",
    .group = Group::hidden,
    .summary = "print the man page",
    .help = "Prints the source of reprise(1).",
    .examples = {{"reprise __man | man -l -", "read it"}},
    .run = run,
}};

}  // namespace
}  // namespace reprise::cli

// SPDX-License-Identifier: MIT
// The process entry; everything else is in command.cpp, where tests reach it.
#include <string>
#include <vector>

#include "cli/command.h"

int main(int argc, char** argv) {
    return reprise::cli::run_main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}

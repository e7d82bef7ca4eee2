// SPDX-License-Identifier: MIT
// Raw records as text, one line each: for looking at them and for tests.
#pragma once

#include <cstdint>
#include <string>

#include "formats/raw/log.h"

namespace reprise {

/// "CALL 12.345678901 101/102 #7 read(3, 0x7f.., 4096) = 4096 fd0=3 dev:ino 8:17 ... path1=\"a\"". No newline.
std::string raw_line(const raw_head& record);
/// "CALL"; "?" where there is no such type.
const char* raw_type_name(uint8_t type);
/// Name of a system call, or "call_N".
std::string raw_call_name(unsigned nr);

}  // namespace reprise

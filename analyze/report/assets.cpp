// SPDX-License-Identifier: MIT
#include "analyze/report/assets.h"

// REPRISE_CHART_LIBRARY, REPRISE_PAGE_SCRIPT and REPRISE_PAGE_STYLE are file names, set by the build.
// NOLINTNEXTLINE
asm(".section .rodata\n"
    "reprise_chart_library_begin:\n"
    ".incbin \"" REPRISE_CHART_LIBRARY
    "\"\n"
    "reprise_chart_library_end:\n"
    ".byte 0\n"
    "reprise_page_script_begin:\n"
    ".incbin \"" REPRISE_PAGE_SCRIPT
    "\"\n"
    "reprise_page_script_end:\n"
    ".byte 0\n"
    "reprise_page_style_begin:\n"
    ".incbin \"" REPRISE_PAGE_STYLE
    "\"\n"
    "reprise_page_style_end:\n"
    ".byte 0\n"
    ".previous\n");

extern "C" const char reprise_chart_library_begin[], reprise_chart_library_end[];
extern "C" const char reprise_page_script_begin[], reprise_page_script_end[];
extern "C" const char reprise_page_style_begin[], reprise_page_style_end[];

namespace reprise {

std::string_view chart_library() { return {reprise_chart_library_begin, reprise_chart_library_end}; }
std::string_view page_script() { return {reprise_page_script_begin, reprise_page_script_end}; }
std::string_view page_style() { return {reprise_page_style_begin, reprise_page_style_end}; }

}  // namespace reprise

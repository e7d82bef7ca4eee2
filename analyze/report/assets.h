// SPDX-License-Identifier: MIT
// What a page carries besides its data: the chart library (Chart.js, of Debian's libjs-chart.js), our script and style.
#pragma once

#include <string_view>

namespace reprise {

std::string_view chart_library();
std::string_view page_script();
std::string_view page_style();

}  // namespace reprise

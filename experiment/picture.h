// SPDX-License-Identifier: MIT
// Curves with intervals, as SVG and PNG.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace reprise {

struct ChartPoint {
    double x = 0;  // place on the axis
    double y = 0, low = 0, high = 0;
};

struct ChartCurve {
    std::string name;  // in the legend, once for all panels
    std::vector<ChartPoint> points;
    bool behind = false;  // broad and pale, so that the others can be seen where they lie on it
};

struct ChartPanel {
    std::string title;
    std::vector<ChartCurve> curves;              // the same ones in each panel, in the same order
    std::function<std::string(double)> y_label;  // of a tick
    bool share = false;                          // y from 0 to 1
    bool binary = false;                         // y in bytes: ticks at round KiB, MiB ...
};

struct ChartTick {
    double x = 0;
    std::string label;
};

struct Chart {
    std::string title, caption;  // the caption below: what was measured, and how
    std::string x_title;
    std::vector<ChartTick> ticks;  // ascending
    std::vector<ChartPanel> panels;
};

/// Ticks from 0 to at least `most`, at most `count` steps of 1, 2 or 5 times a power of ten.
std::vector<double> round_ticks(double most, int count);

/// By the ending of `path`, .svg or .png. Throws Error (machine) where it cannot be written.
void draw(const Chart& chart, const std::filesystem::path& path);

}  // namespace reprise

// SPDX-License-Identifier: MIT
#include "experiment/picture.h"

#include <cairo-svg.h>
#include <cairo.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <numeric>

#include "formats/support/error.h"
#include "formats/support/sanitized.h"

#if defined(REPRISE_ASAN)
// What cairo reads of the system's fonts is kept until the process ends.
extern "C" const char* __lsan_default_suppressions();                                  // NOLINT
extern "C" const char* __lsan_default_suppressions() { return "leak:libfontconfig"; }  // NOLINT
#endif

namespace reprise {
namespace {

// Pixels; PNG has twice as many.
constexpr double kWidth = 960, kPanelHeight = 250, kTop = 44, kLegend = 26, kBottom = 30, kGap = 18;
constexpr double kLeft = 72, kRight = 14, kHead = 26, kFoot = 40;

struct Colour {
    double red, green, blue;
};
// Okabe and Ito, "Color Universal Design" (2008): told apart with every kind of colour vision.
constexpr std::array<Colour, 7> kColours = {{{0.00, 0.45, 0.70},
                                             {0.84, 0.37, 0.00},
                                             {0.00, 0.62, 0.45},
                                             {0.80, 0.47, 0.65},
                                             {0.90, 0.62, 0.00},
                                             {0.34, 0.71, 0.91},
                                             {0.20, 0.20, 0.20}}};

struct Box {
    double x, y, width, height;
};

class Pen {
public:
    explicit Pen(cairo_t* at) : at_(at) {}

    void colour(const Colour& c, double alpha = 1) { cairo_set_source_rgba(at_, c.red, c.green, c.blue, alpha); }
    void grey(double value) { colour({value, value, value}); }
    void line(double x1, double y1, double x2, double y2, double width) {
        cairo_set_line_width(at_, width);
        cairo_move_to(at_, x1, y1);
        cairo_line_to(at_, x2, y2);
        cairo_stroke(at_);
    }
    void dot(double x, double y, double radius) {
        cairo_arc(at_, x, y, radius, 0, 2 * M_PI);
        cairo_fill(at_);
    }
    double width_of(const std::string& text, double size) {
        cairo_set_font_size(at_, size);
        cairo_text_extents_t extents;
        cairo_text_extents(at_, text.c_str(), &extents);
        return extents.x_advance;
    }
    /// `align`: 0 begins at x, 0.5 is centred, 1 ends there.
    void text(double x, double y, const std::string& text, double size, double align = 0, bool bold = false) {
        cairo_select_font_face(at_, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                               bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
        const double width = width_of(text, size);
        cairo_move_to(at_, x - align * width, y);
        cairo_show_text(at_, text.c_str());
    }

private:
    cairo_t* at_;
};

double most_of(const ChartPanel& panel) {
    double most = panel.share ? 1.0 : 0.0;
    for (const ChartCurve& curve : panel.curves) {
        for (const ChartPoint& point : curve.points) {
            most = std::max({most, point.y, point.high});
        }
    }
    return most > 0 ? most : 1.0;
}

void draw_panel(Pen& pen, const Chart& chart, const ChartPanel& panel, const Box& box) {
    const Box plot = {box.x + kLeft, box.y + kHead, box.width - kLeft - kRight, box.height - kHead - kFoot};
    pen.grey(0.1);
    pen.text(plot.x, box.y + 16, panel.title, 13, 0, true);
    double unit = 1;
    while (panel.binary && most_of(panel) / unit >= 1024) {
        unit *= 1024;
    }
    std::vector<double> ticks = round_ticks(most_of(panel) / unit, 5);
    for (double& tick : ticks) {
        tick *= unit;
    }
    const double most = ticks.back();
    const double first = chart.ticks.front().x, last = chart.ticks.back().x, room = std::max(last - first, 1e-9) * 0.06;
    const auto x_at = [&](double x) {
        return chart.ticks.size() == 1 ? plot.x + plot.width / 2
                                       : plot.x + (x - first + room) / (last - first + 2 * room) * plot.width;
    };
    const auto y_at = [&](double y) { return plot.y + plot.height * (1 - std::clamp(y / most, 0.0, 1.0)); };
    for (const double tick : ticks) {
        pen.grey(0.88);
        pen.line(plot.x, y_at(tick), plot.x + plot.width, y_at(tick), 1);
        pen.grey(0.3);
        pen.text(plot.x - 8, y_at(tick) + 4, tick == 0 ? "0" : panel.y_label(tick), 11, 1);
    }
    double free_from = -1e9;
    for (const ChartTick& tick : chart.ticks) {
        pen.grey(0.3);
        pen.line(x_at(tick.x), plot.y + plot.height, x_at(tick.x), plot.y + plot.height + 4, 1);
        const double half = pen.width_of(tick.label, 11) / 2;
        if (x_at(tick.x) - half > free_from) {  // labels do not cover each other
            pen.text(x_at(tick.x), plot.y + plot.height + 17, tick.label, 11, 0.5);
            free_from = x_at(tick.x) + half + 4;
        }
    }
    pen.text(plot.x + plot.width / 2, plot.y + plot.height + 33, chart.x_title, 11, 0.5);
    std::vector<size_t> order(panel.curves.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_partition(order.begin(), order.end(), [&](size_t i) { return panel.curves[i].behind; });
    for (const size_t i : order) {
        const std::vector<ChartPoint>& points = panel.curves[i].points;
        const bool behind = panel.curves[i].behind;
        pen.colour(kColours[i % kColours.size()], behind ? 0.45 : 1);
        for (size_t k = 0; k < points.size(); ++k) {
            const ChartPoint& point = points[k];
            const double x = x_at(point.x);
            if (k > 0) {
                pen.line(x_at(points[k - 1].x), y_at(points[k - 1].y), x, y_at(point.y), behind ? 6 : 2);
            }
            pen.line(x, y_at(point.low), x, y_at(point.high), 1.5);
            pen.line(x - 4, y_at(point.low), x + 4, y_at(point.low), 1.5);
            pen.line(x - 4, y_at(point.high), x + 4, y_at(point.high), 1.5);
            pen.dot(x, y_at(point.y), behind ? 6 : 3.5);
        }
    }
}

double height_of(const Chart& chart) {
    const size_t whole = (chart.panels.size() + 1) / 2;
    const auto rows = static_cast<double>(whole);
    return kTop + kLegend + rows * kPanelHeight + kBottom;
}

void draw_all(cairo_t* at, const Chart& chart) {
    Pen pen(at);
    const double height = height_of(chart);
    cairo_set_source_rgb(at, 1, 1, 1);
    cairo_paint(at);
    pen.grey(0.1);
    pen.text(16, 28, chart.title, 16, 0, true);
    double x = 16;
    const std::vector<ChartCurve>& curves = chart.panels.front().curves;
    for (size_t i = 0; curves.size() > 1 && i < curves.size(); ++i) {
        pen.colour(kColours[i % kColours.size()]);
        pen.line(x, kTop + 10, x + 22, kTop + 10, 2);
        pen.dot(x + 11, kTop + 10, 3.5);
        pen.grey(0.1);
        pen.text(x + 28, kTop + 14, curves[i].name, 12);
        x += 28 + pen.width_of(curves[i].name, 12) + 22;
    }
    const double width = (kWidth - 2 * kGap) / 2;
    for (size_t i = 0; i < chart.panels.size(); ++i) {
        const size_t above = i / 2;
        const auto column = static_cast<double>(i % 2), row = static_cast<double>(above);
        draw_panel(pen, chart, chart.panels[i],
                   {kGap / 2 + column * (width + kGap), kTop + kLegend + row * kPanelHeight, width, kPanelHeight});
    }
    pen.grey(0.35);
    pen.text(16, height - 12, chart.caption, 11);
}

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

}  // namespace

std::vector<double> round_ticks(double most, int count) {
    const double rough = most / std::max(count, 1);
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (factor * power >= rough * (1 - 1e-9)) {
            step = factor * power;
            break;
        }
    }
    std::vector<double> ticks = {0.0};
    while (ticks.back() < most * (1 - 1e-9)) {
        ticks.push_back(step * static_cast<double>(ticks.size()));
    }
    return ticks;
}

void draw(const Chart& chart, const std::filesystem::path& path) {
    if (chart.panels.empty() || chart.ticks.empty()) {
        return;
    }
    constexpr int kScale = 2;
    const double height = height_of(chart);
    const bool svg = path.extension() == ".svg";
    Surface surface(svg ? cairo_svg_surface_create(path.c_str(), kWidth, height)
                        : cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(kWidth) * kScale,
                                                     static_cast<int>(height) * kScale),
                    cairo_surface_destroy);
    Context context(cairo_create(surface.get()), cairo_destroy);
    if (!svg) {
        cairo_scale(context.get(), kScale, kScale);
    }
    draw_all(context.get(), chart);
    cairo_status_t status = cairo_status(context.get());
    context.reset();
    if (svg) {
        cairo_surface_finish(surface.get());
        status = status == CAIRO_STATUS_SUCCESS ? cairo_surface_status(surface.get()) : status;
    } else if (status == CAIRO_STATUS_SUCCESS) {
        status = cairo_surface_write_to_png(surface.get(), path.c_str());
    }
    if (status != CAIRO_STATUS_SUCCESS) {
        throw machine_error("cannot write " + escape_line(path.string()) + ": " + cairo_status_to_string(status), "");
    }
}

}  // namespace reprise

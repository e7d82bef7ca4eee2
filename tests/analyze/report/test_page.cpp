// SPDX-License-Identifier: MIT
// Pages: that they hold what was given, and nothing that a name in a recording could make them do.
#include "analyze/report/page.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support.h"

using namespace reprise;

namespace {

size_t times(std::string_view text, std::string_view what) {
    size_t count = 0;
    for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + what.size())) {
        ++count;
    }
    return count;
}

nlohmann::json data_of(std::string_view html) {
    constexpr std::string_view kBegin = "id=\"page-data\">";
    const size_t from = html.find(kBegin) + kBegin.size();
    return nlohmann::json::parse(html.substr(from, html.find("</script>", from) - from));
}

PageChart chart(std::string id) {
    PageChart out;
    out.id = std::move(id);
    out.title = "A chart";
    out.x = {0, 1, 2};
    out.series = {{"read", {1, std::numeric_limits<double>::quiet_NaN(), 1234567.891}}};
    return out;
}

}  // namespace

TEST_CASE("page: what was given is there, once and in order") {
    Page page("Title", "lead");
    page.section("First", "text");
    page.findings({"one", "two"});
    page.figures({{"elapsed", "9.5 s"}});
    page.chart(chart("a"));
    page.section("Second");
    page.table({"A table", {{"name"}, {"bytes", true}}, {{"x", "1 KiB"}}});
    const std::string html = page.html();
    CHECK(times(html, "<h1>Title</h1>") == 1);
    CHECK(times(html, "<section ") == 2);
    CHECK(times(html, "</section>") == 2);
    CHECK(times(html, "<li>two</li>") == 1);
    CHECK(html.find("<li>one</li>") < html.find("<li>two</li>"));
    CHECK(times(html, "<dt>elapsed</dt><dd>9.5 s</dd>") == 1);
    CHECK(times(html, "<td class=\"right\">1 KiB</td>") == 1);
    CHECK(times(html, "Chart.js v3") == 1);
    CHECK(times(html, "http-equiv=\"Content-Security-Policy\"") == 1);
    const nlohmann::json charts = data_of(html)["charts"];
    REQUIRE(charts.size() == 1);
    CHECK(charts[0]["id"] == "a");
    CHECK(charts[0]["series"][0]["values"].dump() == "[1,null,1234570.0]");
}

TEST_CASE("page: no name ends an element, begins one, or leaves an attribute") {
    const std::string evil =
        "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;<!--\xe2\x80\xa8\xff\n";
    Page page(evil, evil);
    page.section(evil, evil);
    page.paragraph(evil);
    page.findings({evil});
    page.figures({{evil, evil}});
    PageChart bars;
    bars.id = "bars";
    bars.title = bars.note = bars.x_title = evil;
    bars.kind = PageChart::Kind::bars;
    bars.labels = {evil};
    bars.series = {{evil, {1}}};
    page.chart(bars);
    page.lanes({"lanes", evil, evil, 0, 1, "", {{evil}}, {{evil, {1.0F}}}});
    page.table({evil, {{evil}}, {{evil}}});
    const std::string html = page.html();
    CHECK(times(html, "<img") == 0);
    CHECK(times(html, "<script>") == 2);
    CHECK(times(html, "</script>") == 3);
    CHECK(times(html, "alert(1)") == times(html, "alert(1)&lt;") + times(html, "alert(1)\\u003c"));
    CHECK(html.find("\xe2\x80\xa8") == html.npos);
    CHECK(html.find('\xff') == html.npos);
    // What the script gets is the name, with what is no text escaped.
    CHECK(data_of(html)["charts"][0]["labels"][0] ==
          "</script><script>alert(1)</script>\"'><img src=x onerror=alert(2)>&amp;<!--\\xe2\\x80\\xa8\\xff\\n");
    CHECK(data_of(html)["charts"][1]["lanes"][0]["shares"] == "o");
}

TEST_CASE("page: a file is written whole") {
    const test::TempDir dir;
    Page page("Title", "");
    page.chart(chart("a"));
    page.write(dir / "a.html");
    CHECK(test::read_file(dir / "a.html") == page.html());
    CHECK_THROWS(page.write(dir / "none" / "a.html"));
}

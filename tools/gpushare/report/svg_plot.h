// A small plot as SVG: two axes (linear or logarithmic), lines, points, bars, reference lines, and
// a legend of its own above it.
//
// Colours come from CSS classes (s0 to s7 for series, "muted" and "limit"), so that one drawing
// serves the light and the dark page. Pure: the same calls give the same text.

#ifndef GPUSHARE_TOOLS_GPUSHARE_REPORT_SVG_PLOT_H_
#define GPUSHARE_TOOLS_GPUSHARE_REPORT_SVG_PLOT_H_

#include <string>
#include <utility>
#include <vector>

namespace gpushare::tool {

struct Tick {
  double value = 0;
  std::string label;
};

struct Axis {
  std::string label;
  double low = 0;
  double high = 1;
  bool logarithmic = false;
  std::vector<Tick> ticks;
};

// Ticks at 1, 2, 5 x 10^k inside [low, high]; `label` writes a value.
std::vector<Tick> LogTicks(double low, double high, std::string (*label)(double));
// About `count` ticks at round steps.
std::vector<Tick> LinearTicks(double low, double high, int count);

// The entries of a legend, in rows that keep within a width.
class SvgLegend {
 public:
  // The first row's baseline is at `bottom`; further rows are above it.
  SvgLegend(double left, double right, double bottom);

  // `sample` is SVG inside a square of 14 units whose origin is the entry's.
  void Add(const std::string& sample, double sample_width, const std::string& label);
  // The height that the rows after the first one need.
  double ExtraHeight() const;
  std::string Finish() const;

 private:
  const double left_;
  const double right_;
  const double bottom_;
  double end_;  // x where the next entry begins
  std::vector<std::string> rows_;
};

class SvgPlot {
 public:
  SvgPlot(int width, int height, Axis x, Axis y);

  void Line(const std::string& css_class, const std::string& title,
            const std::vector<std::pair<double, double>>& points);
  // `shape` 0 to 7: circle, square, diamond, triangle, cross, plus, inverted triangle, ring.
  void Point(const std::string& css_class, int shape, const std::string& title, double x, double y);
  // A bar from x `from` to `to`, `share` of the height between two labels of the y axis around y.
  void Bar(const std::string& css_class, const std::string& title, double from, double to, double y,
           double share);
  // An entry of the legend: a marker, or the sample of a line or of a bar.
  void KeyPoint(const std::string& css_class, int shape, const std::string& label);
  void KeyLine(const std::string& css_class, const std::string& label);
  void KeyBar(const std::string& css_class, const std::string& label);
  // A line across the whole plot. Its label is in the legend, where no mark can lie on it.
  void Vertical(const std::string& css_class, const std::string& label, double x);
  void Horizontal(const std::string& css_class, const std::string& label, double y);

  // The whole <svg> element; screen readers read out `title` and `description`.
  std::string Finish(const std::string& title, const std::string& description = "") const;

 private:
  double X(double value) const;
  double Y(double value) const;

  int width_;
  int height_;
  Axis x_;
  Axis y_;
  double left_;  // x of the y axis
  std::string body_;
  SvgLegend legend_;
};

// The marker of a series alone, for legends.
std::string MarkerSvg(const std::string& css_class, int shape);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_REPORT_SVG_PLOT_H_

// A small plot as inline SVG: two axes (linear or logarithmic), lines, points, reference lines.
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

class SvgPlot {
 public:
  SvgPlot(int width, int height, Axis x, Axis y);

  void Line(const std::string& css_class, const std::string& title,
            const std::vector<std::pair<double, double>>& points);
  // `shape` 0 to 7: circle, square, diamond, triangle, cross, plus, inverted triangle, ring.
  void Point(const std::string& css_class, int shape, const std::string& title, double x, double y);
  // A line across the whole plot. Its label stands above the plot, where no mark can lie on it.
  void Vertical(const std::string& css_class, const std::string& label, double x);
  void Horizontal(const std::string& css_class, const std::string& label, double y);

  // The whole <svg> element; `title` is read out by screen readers.
  std::string Finish(const std::string& title) const;

 private:
  double X(double value) const;
  double Y(double value) const;
  void Note(const std::string& css_class, const std::string& label);

  int width_;
  int height_;
  Axis x_;
  Axis y_;
  std::string body_;
  std::string notes_;     // samples of the lines across the plot, with their labels
  double notes_end_ = 0;  // x where the next one begins
};

// The marker of a series alone, for legends.
std::string MarkerSvg(const std::string& css_class, int shape);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_REPORT_SVG_PLOT_H_

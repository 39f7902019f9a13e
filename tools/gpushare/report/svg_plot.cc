#include "tools/gpushare/report/svg_plot.h"

#include <algorithm>
#include <cmath>

#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

constexpr double kLeftMin = 64;
constexpr double kRight = 16;
constexpr double kTop = 34;
constexpr double kBottom = 44;
// The legend above the plot: the base line of its last row, the height of a row, the sample of a
// line, the gap to the next entry, the width of a letter at the size that the style sheet gives it.
constexpr double kLegendBottom = 14;
constexpr double kLegendRow = 17;
constexpr double kKeyLine = 22;
constexpr double kKeyPoint = 14;
constexpr double kLegendGap = 14;
constexpr double kLetter = 7;

double Position(const Axis& axis, double value) {
  if (!axis.logarithmic) return (value - axis.low) / (axis.high - axis.low);
  const double low = std::log(axis.low);
  return (std::log(std::max(value, 1e-300)) - low) / (std::log(axis.high) - low);
}

// The labels of the y axis, and the axis' name beside them.
double LeftOf(const Axis& y) {
  size_t longest = 0;
  for (const Tick& tick : y.ticks) longest = std::max(longest, tick.label.size());
  return std::max(kLeftMin, kLetter * static_cast<double>(longest) + (y.label.empty() ? 12 : 26));
}

std::string Shape(const std::string& css_class, int shape, double x, double y, double r) {
  const std::string open = "class=\"mark " + css_class + "\"";
  switch (shape % 8) {
    case 0:
      return Format("<circle %s cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>", open.c_str(), x, y, r);
    case 1:
      return Format("<rect %s x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", open.c_str(),
                    x - 0.9 * r, y - 0.9 * r, 1.8 * r, 1.8 * r);
    case 2:
      return Format("<path %s d=\"M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz\"/>", open.c_str(), x,
                    y - 1.3 * r, 1.3 * r, 1.3 * r, -1.3 * r, 1.3 * r, -1.3 * r, -1.3 * r);
    case 3:
      return Format("<path %s d=\"M%.1f %.1fl%.1f %.1fh%.1fz\"/>", open.c_str(), x, y - 1.2 * r,
                    1.2 * r, 2.1 * r, -2.4 * r);
    case 4:
      return Format("<path class=\"stroke %s\" d=\"M%.1f %.1fl%.1f %.1fm0 %.1fl%.1f %.1f\"/>",
                    css_class.c_str(), x - r, y - r, 2 * r, 2 * r, -2 * r, -2 * r, 2 * r);
    case 5:
      return Format("<path class=\"stroke %s\" d=\"M%.1f %.1fv%.1fm%.1f %.1fh%.1f\"/>",
                    css_class.c_str(), x, y - 1.2 * r, 2.4 * r, -1.2 * r, -1.2 * r, 2.4 * r);
    case 6:
      return Format("<path %s d=\"M%.1f %.1fl%.1f %.1fh%.1fz\"/>", open.c_str(), x, y + 1.2 * r,
                    1.2 * r, -2.1 * r, -2.4 * r);
    default:
      return Format("<circle class=\"stroke %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>",
                    css_class.c_str(), x, y, r);
  }
}

}  // namespace

std::vector<Tick> LogTicks(double low, double high, std::string (*label)(double)) {
  std::vector<Tick> ticks;
  for (int power = static_cast<int>(std::floor(std::log10(low)));
       power <= static_cast<int>(std::ceil(std::log10(high))); ++power) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double value = digit * std::pow(10.0, power);
      if (value >= low * 0.999 && value <= high * 1.001) ticks.push_back({value, label(value)});
    }
  }
  // Over many decades only the powers of ten stay readable.
  if (ticks.size() > 8) {
    std::vector<Tick> powers;
    for (const Tick& tick : ticks) {
      const double power = std::log10(tick.value);
      if (std::abs(power - std::round(power)) < 1e-6) powers.push_back(tick);
    }
    ticks = powers;
  }
  return ticks;
}

std::vector<Tick> LinearTicks(double low, double high, int count) {
  const double raw = (high - low) / std::max(1, count);
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  const double digit = raw / power;
  const double step = power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
  std::vector<Tick> ticks;
  for (int i = 0; i < 100; ++i) {
    const double value = (std::ceil(low / step - 1e-9) + i) * step;
    if (value > high + step * 1e-6) break;
    ticks.push_back({value, Format("%.6g", value)});
  }
  return ticks;
}

SvgLegend::SvgLegend(double left, double right, double bottom)
    : left_(left), right_(right), bottom_(bottom), end_(left) {}

void SvgLegend::Add(const std::string& sample, double sample_width, const std::string& label) {
  const double text = sample_width + 6;
  const double width = text + kLetter * static_cast<double>(label.size());
  if (rows_.empty() || (end_ > left_ && end_ + width > right_)) {
    rows_.emplace_back();
    end_ = left_;
  }
  rows_.back() += Format("<g transform=\"translate(%.1f 0)\">", end_) + sample +
                  Format("<text class=\"note\" x=\"%.1f\" y=\"11\">", text) + EscapeHtml(label) +
                  "</text></g>";
  end_ += width + kLegendGap;
}

double SvgLegend::ExtraHeight() const {
  return rows_.size() > 1 ? kLegendRow * static_cast<double>(rows_.size() - 1) : 0;
}

std::string SvgLegend::Finish() const {
  if (rows_.empty()) return "";
  std::string svg = "<g class=\"legend\">";
  for (size_t i = 0; i < rows_.size(); ++i) {
    const double y = bottom_ - 11 - kLegendRow * static_cast<double>(rows_.size() - 1 - i);
    svg += Format("<g transform=\"translate(0 %.1f)\">", y) + rows_[i] + "</g>";
  }
  return svg + "</g>";
}

SvgPlot::SvgPlot(int width, int height, Axis x, Axis y)
    : width_(width),
      height_(height),
      x_(std::move(x)),
      y_(std::move(y)),
      left_(LeftOf(y_)),
      legend_(0, width, kLegendBottom) {}

double SvgPlot::X(double value) const {
  return left_ + std::clamp(Position(x_, value), -0.02, 1.02) * (width_ - left_ - kRight);
}

double SvgPlot::Y(double value) const {
  return height_ - kBottom -
         std::clamp(Position(y_, value), -0.02, 1.02) * (height_ - kTop - kBottom);
}

void SvgPlot::Line(const std::string& css_class, const std::string& title,
                   const std::vector<std::pair<double, double>>& points) {
  if (points.empty()) return;
  body_ += "<path class=\"line " + css_class + "\" d=\"";
  char command = 'M';
  for (const auto& [x, y] : points) {
    body_ += Format("%c%.1f %.1f", command, X(x), Y(y));
    command = 'L';
  }
  body_ += "\"><title>" + EscapeHtml(title) + "</title></path>";
}

void SvgPlot::Point(const std::string& css_class, int shape, const std::string& title, double x,
                    double y) {
  body_ += "<g><title>" + EscapeHtml(title) + "</title>" +
           Shape(css_class, shape, X(x), Y(y), 4.5) + "</g>";
}

void SvgPlot::Bar(const std::string& css_class, const std::string& title, double from, double to,
                  double y, double share) {
  const double half = 0.5 * share * std::abs(Y(0) - Y(1));
  body_ +=
      Format("<rect class=\"mark %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">",
             css_class.c_str(), X(from), Y(y) - half, std::max(0.8, X(to) - X(from)), 2 * half) +
      "<title>" + EscapeHtml(title) + "</title></rect>";
}

void SvgPlot::KeyPoint(const std::string& css_class, int shape, const std::string& label) {
  legend_.Add(Shape(css_class, shape, 7, 7, 4.2), kKeyPoint, label);
}

void SvgPlot::KeyLine(const std::string& css_class, const std::string& label) {
  legend_.Add(Format("<path class=\"%s\" d=\"M1 7h%.1f\"/>", css_class.c_str(), kKeyLine), kKeyLine,
              label);
}

void SvgPlot::KeyBar(const std::string& css_class, const std::string& label) {
  legend_.Add(Format("<rect class=\"mark %s\" x=\"1\" y=\"2\" width=\"12\" height=\"10\"/>",
                     css_class.c_str()),
              kKeyPoint, label);
}

void SvgPlot::Vertical(const std::string& css_class, const std::string& label, double x) {
  body_ += Format("<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>", css_class.c_str(), X(x), kTop,
                  height_ - kBottom);
  KeyLine(css_class, label);
}

void SvgPlot::Horizontal(const std::string& css_class, const std::string& label, double y) {
  body_ += Format("<path class=\"%s\" d=\"M%.1f %.1fH%.1f\"/>", css_class.c_str(), left_, Y(y),
                  width_ - kRight);
  KeyLine(css_class, label);
}

std::string SvgPlot::Finish(const std::string& title, const std::string& description) const {
  const double extra = legend_.ExtraHeight();
  std::string svg = Format("<svg class=\"plot\" viewBox=\"0 %.0f %d %.0f\" role=\"img\">", -extra,
                           width_, height_ + extra) +
                    "<title>" + EscapeHtml(title) + "</title>";
  if (!description.empty()) svg += "<desc>" + EscapeHtml(description) + "</desc>";
  double labelled = -kLetter;  // x where the last label ends
  for (const Tick& tick : x_.ticks) {
    const double x = X(tick.value);
    svg += Format("<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", x, kTop, height_ - kBottom);
    // A label at the right edge ends there; one that would touch its neighbour is left out.
    const double width = kLetter * static_cast<double>(tick.label.size());
    const double end = std::min(x + 0.5 * width, width_ - 1.0);
    if (end - width < labelled + kLetter) continue;
    labelled = end;
    svg += Format("<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                  end - 0.5 * width, height_ - kBottom + 15) +
           EscapeHtml(tick.label) + "</text>";
  }
  for (const Tick& tick : y_.ticks) {
    svg += Format("<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", left_, Y(tick.value),
                  width_ - kRight) +
           Format("<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", left_ - 6,
                  Y(tick.value) + 4) +
           EscapeHtml(tick.label) + "</text>";
  }
  svg += Format("<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>", left_, kTop, height_ - kBottom,
                width_ - kRight);
  svg += Format("<text class=\"label\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
                0.5 * (left_ + width_ - kRight), height_ - 8) +
         EscapeHtml(x_.label) + "</text>";
  svg += Format(
             "<text class=\"label\" x=\"%.1f\" y=\"14\" text-anchor=\"middle\" "
             "transform=\"rotate(-90)\">",
             -0.5 * (kTop + height_ - kBottom)) +
         EscapeHtml(y_.label) + "</text>";
  return svg + body_ + legend_.Finish() + "</svg>";
}

std::string MarkerSvg(const std::string& css_class, int shape) {
  return "<svg class=\"key\" viewBox=\"0 0 14 14\" aria-hidden=\"true\">" +
         Shape(css_class, shape, 7, 7, 4.2) + "</svg>";
}

}  // namespace gpushare::tool

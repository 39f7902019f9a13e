#include "tools/gpushare/report/svg_plot.h"

#include <algorithm>
#include <cmath>

#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

constexpr double kLeft = 72;
constexpr double kRight = 16;
constexpr double kTop = 34;
constexpr double kBottom = 44;
// The labels above the plot: the line's sample, the gap to the next one, the width of a letter at
// the largest size that the style sheet gives it.
constexpr double kNoteTop = 14;
constexpr double kNoteSample = 22;
constexpr double kNoteGap = 14;
constexpr double kNoteLetter = 6.6;

double Position(const Axis& axis, double value) {
  if (!axis.logarithmic) return (value - axis.low) / (axis.high - axis.low);
  const double low = std::log(axis.low);
  return (std::log(std::max(value, 1e-300)) - low) / (std::log(axis.high) - low);
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

SvgPlot::SvgPlot(int width, int height, Axis x, Axis y)
    : width_(width), height_(height), x_(std::move(x)), y_(std::move(y)) {}

double SvgPlot::X(double value) const {
  return kLeft + std::clamp(Position(x_, value), -0.02, 1.02) * (width_ - kLeft - kRight);
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

void SvgPlot::Vertical(const std::string& css_class, const std::string& label, double x) {
  body_ += Format("<path class=\"%s\" d=\"M%.1f %.1fV%.1f\"/>", css_class.c_str(), X(x), kTop,
                  height_ - kBottom);
  Note(css_class, label);
}

void SvgPlot::Horizontal(const std::string& css_class, const std::string& label, double y) {
  body_ += Format("<path class=\"%s\" d=\"M%.1f %.1fH%.1f\"/>", css_class.c_str(), kLeft, Y(y),
                  width_ - kRight);
  Note(css_class, label);
}

void SvgPlot::Note(const std::string& css_class, const std::string& label) {
  const double text = notes_end_ + kNoteSample + 6;
  notes_ += Format("<path class=\"%s\" d=\"M%.1f %.1fh%.1f\"/>", css_class.c_str(), notes_end_ + 1,
                   kNoteTop - 4, kNoteSample) +
            Format("<text class=\"note\" x=\"%.1f\" y=\"%.1f\">", text, kNoteTop) +
            EscapeHtml(label) + "</text>";
  notes_end_ = text + kNoteLetter * static_cast<double>(label.size()) + kNoteGap;
}

std::string SvgPlot::Finish(const std::string& title) const {
  std::string svg = Format("<svg viewBox=\"0 0 %d %d\" role=\"img\">", width_, height_) +
                    "<title>" + EscapeHtml(title) + "</title>";
  for (const Tick& tick : x_.ticks) {
    svg += Format("<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>", X(tick.value), kTop,
                  height_ - kBottom) +
           Format("<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
                  X(tick.value), height_ - kBottom + 15) +
           EscapeHtml(tick.label) + "</text>";
  }
  for (const Tick& tick : y_.ticks) {
    svg += Format("<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>", kLeft, Y(tick.value),
                  width_ - kRight) +
           Format("<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">", kLeft - 6,
                  Y(tick.value) + 4) +
           EscapeHtml(tick.label) + "</text>";
  }
  svg += Format("<path class=\"axis\" d=\"M%.1f %.1fV%.1fH%.1f\"/>", kLeft, kTop, height_ - kBottom,
                width_ - kRight);
  svg += Format("<text class=\"label\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">",
                0.5 * (kLeft + width_ - kRight), height_ - 8) +
         EscapeHtml(x_.label) + "</text>";
  svg += Format(
             "<text class=\"label\" x=\"%.1f\" y=\"14\" text-anchor=\"middle\" "
             "transform=\"rotate(-90)\">",
             -0.5 * (kTop + height_ - kBottom)) +
         EscapeHtml(y_.label) + "</text>";
  return svg + body_ + notes_ + "</svg>";
}

std::string MarkerSvg(const std::string& css_class, int shape) {
  return "<svg class=\"key\" viewBox=\"0 0 14 14\" aria-hidden=\"true\">" +
         Shape(css_class, shape, 7, 7, 4.2) + "</svg>";
}

}  // namespace gpushare::tool

#include "tools/gpushare/base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

constexpr size_t kBarWidth = 24;
constexpr size_t kColumnsDefault = 80;

// 0 when stderr is no terminal.
size_t TerminalColumns() {
  if (isatty(STDERR_FILENO) == 0) return 0;
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kColumnsDefault;
  return size.ws_col;
}

int64_t WallNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string SecondsText(int64_t ns) {
  const auto seconds = static_cast<long long>((ns + 500'000'000) / 1'000'000'000);
  if (seconds < 120) return Format("%lld s", seconds);
  if (seconds < 7200) return Format("%lld min %02lld s", seconds / 60, seconds % 60);
  return Format("%lld h %02lld min", seconds / 3600, seconds / 60 % 60);
}

}  // namespace

ProgressText::ProgressText(size_t steps, size_t columns, int64_t start_ns)
    : steps_(steps), columns_(columns), start_ns_(start_ns), printed_ns_(start_ns) {}

std::string ProgressText::Step(const std::string& what, int64_t now_ns) {
  ++done_;
  const bool live = columns_ > 0;
  // The first line and the last one are drawn in any case.
  const bool draw = live && (!drawn_ || done_ == steps_);
  const int64_t interval_ns = live ? kLiveIntervalNs : kPlainIntervalNs;
  if (!draw && now_ns - printed_ns_ < interval_ns) return "";
  printed_ns_ = now_ns;
  drawn_ = live;
  return live ? Live(what, now_ns - start_ns_) : Plain(what, now_ns - start_ns_);
}

std::string ProgressText::Clear() const { return drawn_ ? "\r\033[K" : ""; }

// From the mean of the steps so far.
int64_t ProgressText::RemainingNs(int64_t elapsed_ns) const {
  const size_t left = steps_ > done_ ? steps_ - done_ : 0;
  return static_cast<int64_t>(static_cast<double>(elapsed_ns) / static_cast<double>(done_) *
                              static_cast<double>(left));
}

std::string ProgressText::Live(const std::string& what, int64_t elapsed_ns) const {
  std::string line = Format("%zu done, ", done_) + SecondsText(elapsed_ns) + "  " + what;
  if (steps_ > 0) {
    const size_t filled = std::min(kBarWidth, kBarWidth * done_ / steps_);
    line = "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "]" +
           Format(" %zu/%zu ", done_, steps_) + SecondsText(elapsed_ns) + ", about " +
           SecondsText(RemainingNs(elapsed_ns)) + " left  " + what;
  }
  // A line that wraps could not be drawn over.
  if (line.size() >= columns_) line.resize(columns_ - 1);
  return "\r\033[K" + line;
}

std::string ProgressText::Plain(const std::string& what, int64_t elapsed_ns) const {
  if (steps_ == 0) {
    return Format("gpushare: %zu done, ", done_) + SecondsText(elapsed_ns) + " elapsed: " + what +
           "\n";
  }
  return Format("gpushare: %zu of %zu done, ", done_, steps_) + SecondsText(elapsed_ns) +
         " elapsed, about " + SecondsText(RemainingNs(elapsed_ns)) + " remaining: " + what + "\n";
}

Progress::Progress(size_t steps, bool quiet)
    : quiet_(quiet), text_(steps, TerminalColumns(), WallNs()) {}

Progress::~Progress() { std::fputs(text_.Clear().c_str(), stderr); }

void Progress::Step(const std::string& what) {
  if (quiet_) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  std::fputs(text_.Step(what, WallNs()).c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace gpushare::tool

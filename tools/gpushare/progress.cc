#include "tools/gpushare/progress.h"

#include <unistd.h>

#include <cstdio>

namespace gpushare::tool {

Progress::Progress(size_t steps) : terminal_(isatty(STDERR_FILENO) != 0), steps_(steps) {}

Progress::~Progress() {
  if (terminal_ && done_ > 0) std::fputs("\r\033[K", stderr);
}

void Progress::Step(const std::string& what) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++done_;
  if (terminal_) Draw(what);
}

void Progress::Draw(const std::string& what) {
  constexpr size_t kBarWidth = 24;
  const size_t filled = steps_ == 0 ? kBarWidth : kBarWidth * done_ / steps_;
  std::string bar(kBarWidth, '.');
  for (size_t i = 0; i < filled && i < kBarWidth; ++i) bar[i] = '#';
  std::fprintf(stderr, "\r\033[K[%s] %zu/%zu %.48s", bar.c_str(), done_, steps_, what.c_str());
  std::fflush(stderr);
}

}  // namespace gpushare::tool

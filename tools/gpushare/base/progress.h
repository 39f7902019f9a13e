// Progress on stderr: one live line on a terminal, else a plain line at most every few seconds.
//
// Threads: Progress any; ProgressText its caller's.

#ifndef GPUSHARE_TOOLS_GPUSHARE_BASE_PROGRESS_H_
#define GPUSHARE_TOOLS_GPUSHARE_BASE_PROGRESS_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

namespace gpushare::tool {

// A run that ends within this time is silent where there is no terminal.
inline constexpr int64_t kPlainIntervalNs = 5'000'000'000;
// A terminal's line is drawn at most ten times a second, however short the steps are.
inline constexpr int64_t kLiveIntervalNs = 100'000'000;

// What to print after each step. Pure: the caller gives the time.
class ProgressText {
 public:
  // `columns` of the terminal, 0: there is none. `steps` 0: their number is unknown, and nothing is
  // said of the remaining time.
  ProgressText(size_t steps, size_t columns, int64_t start_ns);

  // Counts one step as done; `what` names it. Empty: nothing to print now.
  std::string Step(const std::string& what, int64_t now_ns);
  // Removes the live line; empty without one.
  std::string Clear() const;

 private:
  std::string Live(const std::string& what, int64_t elapsed_ns) const;
  std::string Plain(const std::string& what, int64_t elapsed_ns) const;
  int64_t RemainingNs(int64_t elapsed_ns) const;

  const size_t steps_;
  const size_t columns_;
  const int64_t start_ns_;
  int64_t printed_ns_;
  size_t done_ = 0;
  bool drawn_ = false;  // the live line
};

class Progress {
 public:
  // `quiet`: prints nothing.
  explicit Progress(size_t steps, bool quiet = false);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Step(const std::string& what);

 private:
  const bool quiet_;
  std::mutex mutex_;
  ProgressText text_;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_BASE_PROGRESS_H_

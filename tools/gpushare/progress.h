// One line of progress on a terminal; silent when stderr is a file or a pipe.
//
// Threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PROGRESS_H_
#define GPUSHARE_TOOLS_GPUSHARE_PROGRESS_H_

#include <cstddef>
#include <mutex>
#include <string>

namespace gpushare::tool {

class Progress {
 public:
  explicit Progress(size_t steps);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Counts one step as done; `what` names it.
  void Step(const std::string& what);

 private:
  void Draw(const std::string& what);

  const bool terminal_;
  std::mutex mutex_;
  size_t steps_;
  size_t done_ = 0;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PROGRESS_H_

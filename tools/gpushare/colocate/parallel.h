// Independent jobs on a few threads. Each job writes its result to its own place. The first failure
// is thrown after all threads have stopped.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COLOCATE_PARALLEL_H_
#define GPUSHARE_TOOLS_GPUSHARE_COLOCATE_PARALLEL_H_

#include <atomic>
#include <cstddef>
#include <functional>

namespace gpushare::tool {

// Calls job(0) to job(count - 1), each once, on at most `threads` threads: on fewer where the
// system starts no more, and on this one at least. When a job throws, sets `stop` and starts no
// more jobs.
void RunParallel(size_t count, unsigned threads, std::atomic<bool>& stop,
                 const std::function<void(size_t)>& job);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COLOCATE_PARALLEL_H_

// Independent jobs on a few threads: results go to places of their own, the first failure is
// thrown after all have stopped.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PARALLEL_H_
#define GPUSHARE_TOOLS_GPUSHARE_PARALLEL_H_

#include <atomic>
#include <cstddef>
#include <functional>

namespace gpushare::tool {

// Calls job(0) to job(count - 1), each once, on at most `threads` threads; sets `stop` once one
// throws and starts no more jobs then.
void RunParallel(size_t count, unsigned threads, std::atomic<bool>& stop,
                 const std::function<void(size_t)>& job);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PARALLEL_H_

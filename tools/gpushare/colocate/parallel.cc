#include "tools/gpushare/colocate/parallel.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

namespace gpushare::tool {

void RunParallel(size_t count, unsigned threads, std::atomic<bool>& stop,
                 const std::function<void(size_t)>& job) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<size_t> next{0};
  // Report the job that failed first: later ones may fail because of `stop`.
  std::atomic<size_t> first_failure{count};
  const auto work = [&] {
    while (!stop.load(std::memory_order_relaxed)) {
      const size_t index = next.fetch_add(1);
      if (index >= count) return;
      try {
        job(index);
      } catch (...) {
        failures[index] = std::current_exception();
        size_t none = count;
        first_failure.compare_exchange_strong(none, index);
        stop.store(true, std::memory_order_relaxed);
      }
    }
  };
  std::vector<std::thread> pool;
  const size_t wanted = std::min<size_t>(std::max(1u, threads), count);
  pool.reserve(wanted);
  try {
    while (pool.size() + 1 < wanted) pool.emplace_back(work);
  } catch (const std::system_error&) {
    // The system starts no more threads: those that there are, and this one, do all jobs.
  }
  work();
  for (std::thread& thread : pool) thread.join();
  if (first_failure.load() < count) std::rethrow_exception(failures[first_failure.load()]);
}

}  // namespace gpushare::tool

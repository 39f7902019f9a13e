// The same work on several threads of a benchmark, each of which takes its next job by itself.

#ifndef GPUSHARE_BENCHMARKS_GPU_PTX_ON_THREADS_H_
#define GPUSHARE_BENCHMARKS_GPU_PTX_ON_THREADS_H_

#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace gpushare::benchmarks {

// Runs `work` on so many threads and returns when all have ended. An exception ends the work of its
// own thread alone, and is printed on stderr behind `name`. If the system refuses a thread, the
// others do its jobs; if it refuses all of them, the caller does.
template <class Work>
void OnThreads(const std::string& name, int threads, const Work& work) {
  const auto guarded = [&name, &work]() noexcept {
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
    } catch (...) {
      std::fprintf(stderr, "%s: an unknown exception\n", name.c_str());
    }
  };
  std::vector<std::thread> workers;
  workers.reserve(static_cast<size_t>(threads));
  try {
    for (int i = 0; i < threads; ++i) workers.emplace_back(guarded);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: a thread was refused: %s\n", name.c_str(), error.what());
    if (workers.empty()) guarded();
  }
  for (std::thread& worker : workers) worker.join();
}

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_PTX_ON_THREADS_H_

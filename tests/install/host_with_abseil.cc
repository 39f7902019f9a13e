// A host program with an Abseil of its own beside the one inside libgpushare.so. Each keeps its own
// state: the host's objects are made, changed and destroyed by the host's code, before, while and
// after the library runs.
#include <absl/container/flat_hash_map.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/cord.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>

#include <cstdio>
#include <gpushare/gpushare.hpp>
#include <string>
#include <thread>

namespace {

// Walks through the code that differs between releases: payloads of a status, chunks of a cord,
// hash tables, locks.
bool HostAbseilWorks() {
  absl::Status status = absl::InvalidArgumentError(absl::StrCat("a sentence ", 17));
  status.SetPayload("type.example/host", absl::Cord(std::string(5000, 'x')));
  const absl::StatusOr<int> failed = status;
  if (failed.status().GetPayload("type.example/host")->size() != 5000) return false;
  absl::flat_hash_map<std::string, int> table;
  for (int i = 0; i < 1000; ++i) table[absl::StrCat("key ", i)] = i;
  absl::Mutex mutex;
  bool ready = false;
  std::thread other([&] {
    absl::MutexLock lock(&mutex);
    ready = true;
  });
  {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&ready));
  }
  other.join();
  return table.size() == 1000 && table.at("key 999") == 999 && status.message() == "a sentence 17";
}

}  // namespace

int main() {
  if (!HostAbseilWorks()) return 1;
  gpushare::KernelOptions kernel_options;
  kernel_options.name = "sincos_27us";
  gpushare::AppOptions app_options;
  app_options.name = "host";
  app_options.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  try {
    const gpushare::Runtime runtime = gpushare::Runtime::Create().value();
    // An error of the library: its own status, with its own string.
    gpushare::AppOptions bad = app_options;
    bad.p99_bound = -1;
    if (runtime.CreateApp(bad).ok()) return 2;
    const gpushare::Queue queue = runtime.CreateApp(app_options).value().CreateQueue().value();
    const gpushare::Kernel kernel = runtime.RegisterKernel(kernel_options).value();
    gpushare::TaskOptions task;
    task.kernel = kernel.get();
    task.block_tasks = 1000;
    for (int i = 0; i < 100; ++i) {
      gpushare::Ticket ticket = queue.SubmitBe(task).value();
      if (!ticket.Wait().ok() || !HostAbseilWorks()) return 3;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 4;
  }
  if (!HostAbseilWorks()) return 5;
  std::printf("two Abseils in one process: both work\n");
  return 0;
}

// What runs already; see running.h.

#include "src/models/placement/running.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/models/placement/tables.h"

namespace gpushare::models::placement {

namespace {

absl::Status Refuse(const Running& running, absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("App '", running.app, "' runs on GPU '", running.gpu, "', and ", problem));
}

struct AppIndex {
  bool lc = false;
  int32_t index = 0;
};

TextTable<AppIndex> IndexOf(const Cluster& cluster) {
  TextTable<AppIndex> out;
  for (size_t i = 0; i < cluster.lc.size(); ++i) {
    out[cluster.lc[i].name] = {true, static_cast<int32_t>(i)};
  }
  for (size_t i = 0; i < cluster.be.size(); ++i) {
    out[cluster.be[i].name] = {false, static_cast<int32_t>(i)};
  }
  return out;
}

}  // namespace

absl::StatusOr<RunningNow> ReadRunning(const Problem& problem) {
  const Cluster& cluster = problem.cluster();
  RunningNow out;
  out.gpus.resize(static_cast<size_t>(problem.gpus()));
  for (const LcApp& app : cluster.lc) out.lc_arriving.push_back(app.replicas);
  for (const BeApp& app : cluster.be) out.be_arriving.push_back(app.instances);
  const auto apps = IndexOf(cluster);
  std::vector<int64_t> memory_left(static_cast<size_t>(problem.gpus()));
  for (int32_t i = 0; i < problem.gpus(); ++i) {
    memory_left[static_cast<size_t>(i)] = problem.MemoryOf(i);
  }
  for (const Running& running : cluster.running) {
    const int32_t gpu = problem.GpuOf(running.gpu);
    if (gpu == kNone) {
      return Refuse(running, "there is no such GPU; the third of group 'a' is 'a:2'.");
    }
    const auto app = apps.find(running.app);
    if (app == apps.end()) {
      return Refuse(running, "the cluster has no such app; one that leaves has 0 instances.");
    }
    if (running.instances < 1 || running.instances > kBePerGpuMax) {
      return Refuse(running,
                    absl::StrCat("its ", running.instances, " instances there must be from 1 to ",
                                 kBePerGpuMax, "."));
    }
    GpuLoad& load = out.gpus[static_cast<size_t>(gpu)];
    int64_t& left = memory_left[static_cast<size_t>(gpu)];
    const auto index = static_cast<size_t>(app->second.index);
    if (app->second.lc && (running.instances > 1 || load.lc != kNone)) {
      return Refuse(running, "a GPU has one LC replica at most.");
    }
    const int64_t memory =
        app->second.lc ? cluster.lc[index].memory_bytes : cluster.be[index].memory_bytes;
    std::vector<int32_t>& arriving = app->second.lc ? out.lc_arriving : out.be_arriving;
    for (int32_t i = 0; i < running.instances; ++i) {
      if (arriving[index] == 0) break;  // the others have left
      if (memory > left) {
        return Refuse(running,
                      absl::StrCat("it needs ", memory, " bytes there, and ", left, " are left."));
      }
      --arriving[index];
      left -= memory;
      if (app->second.lc) {
        load.lc = app->second.index;
      } else {
        load.be.push_back(app->second.index);
      }
    }
  }
  return out;
}

int64_t MovesOf(const RunningNow& before, const std::vector<GpuLoad>& after) {
  // By app: instances that left a GPU, and that came to one.
  std::vector<int64_t> gone(before.be_arriving.size(), 0);
  std::vector<int64_t> come(before.be_arriving.size(), 0);
  for (size_t gpu = 0; gpu < before.gpus.size(); ++gpu) {
    Table<int32_t, int64_t> change;
    for (const int32_t be : before.gpus[gpu].be) --change[be];
    for (const int32_t be : after[gpu].be) ++change[be];
    for (const auto& [be, count] : change) {
      (count < 0 ? gone : come)[static_cast<size_t>(be)] += std::abs(count);
    }
  }
  int64_t moves = 0;
  for (size_t i = 0; i < gone.size(); ++i) {
    moves += std::min(gone[i], std::max<int64_t>(0, come[i] - before.be_arriving[i]));
  }
  return moves;
}

}  // namespace gpushare::models::placement

// What runs already; see running.h.

#include "src/models/placement/running.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "src/models/placement/tables.h"

namespace gpushare::models::placement {

namespace {

absl::Status Refuse(absl::string_view app, absl::string_view gpu, absl::string_view problem) {
  return absl::InvalidArgumentError(
      absl::StrCat("App '", app, "' runs on GPU '", gpu, "', and ", problem));
}

// LC apps, then BE apps.
TextTable<int32_t> IndexOf(const Cluster& cluster) {
  TextTable<int32_t> out;
  int32_t index = 0;
  for (const LcApp& app : cluster.lc) out[app.name] = index++;
  for (const BeApp& app : cluster.be) out[app.name] = index++;
  return out;
}

// Puts what runs on its GPUs, one by one.
class Reader {
 public:
  explicit Reader(const Problem& problem) : problem_(problem) {
    out_.gpus.resize(static_cast<size_t>(problem.gpus()));
    for (const LcApp& app : problem.cluster().lc) out_.lc_arriving.push_back(app.replicas);
    for (const BeApp& app : problem.cluster().be) out_.be_arriving.push_back(app.instances);
    memory_left_.reserve(out_.gpus.size());
    for (int32_t i = 0; i < problem.gpus(); ++i) memory_left_.push_back(problem.MemoryOf(i));
  }

  absl::Status Add(const RunningAt& running);
  RunningNow Take() { return std::move(out_); }

 private:
  const Problem& problem_;
  RunningNow out_;
  std::vector<int64_t> memory_left_;
};

absl::Status Reader::Add(const RunningAt& running) {
  const Cluster& cluster = problem_.cluster();
  const bool lc = running.app < static_cast<int32_t>(cluster.lc.size());
  const auto index = static_cast<size_t>(running.app) - (lc ? 0 : cluster.lc.size());
  const std::string& name = lc ? cluster.lc[index].name : cluster.be[index].name;
  GpuLoad& load = out_.gpus[static_cast<size_t>(running.gpu)];
  if (lc && load.lc != kNone) {
    return Refuse(name, problem_.NameOf(running.gpu), "a GPU has one LC replica at most.");
  }
  int32_t& arriving = (lc ? out_.lc_arriving : out_.be_arriving)[index];
  if (arriving == 0) return absl::OkStatus();  // it has left
  const int64_t memory = lc ? cluster.lc[index].memory_bytes : cluster.be[index].memory_bytes;
  int64_t& left = memory_left_[static_cast<size_t>(running.gpu)];
  if (memory > left) {
    return Refuse(name, problem_.NameOf(running.gpu),
                  absl::StrCat("it needs ", memory, " bytes there, and ", left, " are left."));
  }
  --arriving;
  left -= memory;
  if (lc) {
    load.lc = static_cast<int32_t>(index);
  } else {
    load.be.push_back(static_cast<int32_t>(index));
  }
  return absl::OkStatus();
}

absl::Status ReadNamed(const Problem& problem, Reader& reader) {
  const Cluster& cluster = problem.cluster();
  if (cluster.running.empty()) return absl::OkStatus();
  const auto apps = IndexOf(cluster);
  for (const Running& running : cluster.running) {
    const int32_t gpu = problem.GpuOf(running.gpu);
    if (gpu == kNone) {
      return Refuse(running.app, running.gpu,
                    "there is no such GPU; the third of group 'a' is 'a:2'.");
    }
    const auto app = apps.find(running.app);
    if (app == apps.end()) {
      return Refuse(running.app, running.gpu,
                    "the cluster has no such app; one that leaves has 0 instances.");
    }
    if (running.instances < 1 || running.instances > kBePerGpuMax) {
      return Refuse(running.app, running.gpu,
                    absl::StrCat("its ", running.instances, " instances there must be from 1 to ",
                                 kBePerGpuMax, "."));
    }
    if (app->second < static_cast<int32_t>(cluster.lc.size()) && running.instances > 1) {
      return Refuse(running.app, running.gpu, "a GPU has one LC replica at most.");
    }
    for (int32_t i = 0; i < running.instances; ++i) {
      if (absl::Status status = reader.Add({gpu, app->second}); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

std::vector<int32_t> Sorted(std::vector<int32_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

// What `from` has beyond `other`; both ascend.
std::vector<int32_t> Without(const std::vector<int32_t>& from, const std::vector<int32_t>& other) {
  std::vector<int32_t> out;
  std::set_difference(from.begin(), from.end(), other.begin(), other.end(),
                      std::back_inserter(out));
  return out;
}

}  // namespace

absl::StatusOr<RunningNow> ReadRunning(const Problem& problem) {
  const Cluster& cluster = problem.cluster();
  Reader reader(problem);
  if (absl::Status status = ReadNamed(problem, reader); !status.ok()) return status;
  const auto apps = static_cast<int64_t>(cluster.lc.size() + cluster.be.size());
  for (const RunningAt& running : cluster.running_at) {
    if (running.gpu < 0 || running.gpu >= problem.gpus() || running.app < 0 ||
        running.app >= apps) {
      return absl::InvalidArgumentError(
          absl::StrCat("App ", running.app, " runs on GPU ", running.gpu, ", and the cluster has ",
                       apps, " apps and ", problem.gpus(), " GPUs, from 0."));
    }
    if (absl::Status status = reader.Add(running); !status.ok()) return status;
  }
  return reader.Take();
}

std::vector<Change> ChangesOf(const RunningNow& before,
                              const std::vector<std::vector<int32_t>>& fits,
                              const std::vector<GpuLoad>& after) {
  std::vector<Change> out(before.be_arriving.size());
  for (size_t gpu = 0; gpu < before.gpus.size(); ++gpu) {
    const std::vector<int32_t> now = Sorted(after[gpu].be);
    const std::vector<int32_t> ran = Sorted(before.gpus[gpu].be);
    const std::vector<int32_t> left = Without(ran, now);
    const std::vector<int32_t> fitting = Without(Sorted(fits[gpu]), now);
    const auto at = static_cast<int32_t>(gpu);
    for (const int32_t be : Without(now, ran)) out[static_cast<size_t>(be)].come.push_back(at);
    for (const int32_t be : fitting) out[static_cast<size_t>(be)].left_fitting.push_back(at);
    for (const int32_t be : Without(left, fitting)) {
      out[static_cast<size_t>(be)].left_displaced.push_back(at);
    }
  }
  return out;
}

std::vector<Move> MovesOf(const RunningNow& before, const std::vector<Change>& changes,
                          int64_t moves_max) {
  // Places that no new instance is there for.
  const auto needed = [&](size_t be) {
    return std::max<int64_t>(
        0, static_cast<int64_t>(changes[be].come.size()) - before.be_arriving[be]);
  };
  int64_t free_moves = moves_max;
  for (size_t be = 0; be < changes.size(); ++be) free_moves -= needed(be);
  std::vector<Move> out;
  for (size_t be = 0; be < changes.size(); ++be) {
    const Change& change = changes[be];
    const int64_t count = std::min(change.moves(), needed(be) + std::max<int64_t>(0, free_moves));
    free_moves -= count - needed(be);
    std::vector<int32_t> from = change.left_fitting;
    from.insert(from.end(), change.left_displaced.begin(), change.left_displaced.end());
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      out.push_back({static_cast<int32_t>(be), from[i], change.come[i]});
    }
  }
  return out;
}

}  // namespace gpushare::models::placement

// Slots of replicas and instances; see slots.h.

#include "bindings/c/placement/slots.h"

#include <gpushare/gpushare.h>

#include <algorithm>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"

namespace gpushare::abi {
namespace {

using models::placement::Cluster;
using models::placement::GpuLoad;
using models::placement::kNone;
using models::placement::Placement;

static_assert(kNone == GPUSHARE_NO_GPU, "a slot without a GPU is the same on both sides");

// The index of the first GPU of each group, then how many there are.
std::vector<int32_t> FirstGpus(const Cluster& cluster) {
  std::vector<int32_t> first = {0};
  for (const auto& group : cluster.gpus) first.push_back(first.back() + group.count);
  return first;
}

std::string NameOf(const Cluster& cluster, const std::vector<int32_t>& first, int32_t gpu) {
  const auto group =
      static_cast<size_t>(std::upper_bound(first.begin(), first.end(), gpu) - first.begin() - 1);
  return absl::StrCat(cluster.gpus[group].name, ":", gpu - first[group]);
}

// The slots of one app. `places` are its GPUs in a placement, ascending; `out` is all
// GPUSHARE_NO_GPU.
void FillSlots(absl::Span<const int32_t> running, absl::Span<const int32_t> places,
               absl::Span<int32_t> out) {
  std::vector<size_t> runs;  // slots that run, by their GPU
  std::vector<size_t> open;  // slots that want a place: new ones, then those that lose theirs
  for (size_t i = 0; i < running.size(); ++i) {
    (running[i] == GPUSHARE_NO_GPU ? open : runs).push_back(i);
  }
  for (size_t i = running.size(); i < out.size(); ++i) open.push_back(i);
  std::stable_sort(runs.begin(), runs.end(),
                   [&](size_t a, size_t b) { return running[a] < running[b]; });
  std::vector<int32_t> others;  // places of which no slot runs there
  size_t next = 0;
  for (const int32_t gpu : places) {
    for (; next < runs.size() && running[runs[next]] < gpu; ++next) open.push_back(runs[next]);
    if (next < runs.size() && running[runs[next]] == gpu) {
      out[runs[next++]] = gpu;
    } else {
      others.push_back(gpu);
    }
  }
  for (; next < runs.size(); ++next) open.push_back(runs[next]);
  // A placement has no more places than there are slots.
  for (size_t i = 0; i < std::min(open.size(), others.size()); ++i) out[open[i]] = others[i];
}

}  // namespace

int64_t SlotsOf(const Cluster& cluster) {
  int64_t slots = 0;
  for (const auto& app : cluster.lc) slots += app.replicas;
  for (const auto& app : cluster.be) slots += app.instances;
  return slots;
}

absl::Status AddRunning(absl::Span<const int32_t> running, Cluster& cluster) {
  const std::vector<int32_t> first = FirstGpus(cluster);
  size_t slot = 0;
  const auto add = [&](const std::string& app, int32_t slots) -> absl::Status {
    for (const size_t end = slot + static_cast<size_t>(slots); slot < end; ++slot) {
      const int32_t gpu = running[slot];
      if (gpu == GPUSHARE_NO_GPU) continue;
      if (gpu < 0 || gpu >= first.back()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "running[", slot, "], of app '", app, "', is ", gpu, ", and a GPU is from 0 to ",
            first.back() - 1, ", or GPUSHARE_NO_GPU (-1)."));
      }
      cluster.running.push_back({.gpu = NameOf(cluster, first, gpu), .app = app, .instances = 1});
    }
    return absl::OkStatus();
  };
  for (const auto& app : cluster.lc) {
    if (absl::Status status = add(app.name, app.replicas); !status.ok()) return status;
  }
  for (const auto& app : cluster.be) {
    if (absl::Status status = add(app.name, app.instances); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<int32_t> GpusOfSlots(const Cluster& cluster, const Placement& placement,
                                 absl::Span<const int32_t> running) {
  std::vector<std::vector<int32_t>> places(cluster.lc.size() + cluster.be.size());
  for (size_t gpu = 0; gpu < placement.gpus.size(); ++gpu) {
    const GpuLoad& load = placement.gpus[gpu];
    if (load.lc != kNone) {
      places[static_cast<size_t>(load.lc)].push_back(static_cast<int32_t>(gpu));
    }
    for (const int32_t be : load.be) {
      places[cluster.lc.size() + static_cast<size_t>(be)].push_back(static_cast<int32_t>(gpu));
    }
  }
  std::vector<int32_t> out(static_cast<size_t>(SlotsOf(cluster)), GPUSHARE_NO_GPU);
  size_t slot = 0;
  const auto fill = [&](size_t app, int32_t slots) {
    const auto count = static_cast<size_t>(slots);
    FillSlots(running.empty() ? running : running.subspan(slot, count), places[app],
              absl::MakeSpan(out).subspan(slot, count));
    slot += count;
  };
  for (size_t i = 0; i < cluster.lc.size(); ++i) fill(i, cluster.lc[i].replicas);
  for (size_t i = 0; i < cluster.be.size(); ++i) {
    fill(cluster.lc.size() + i, cluster.be[i].instances);
  }
  return out;
}

}  // namespace gpushare::abi

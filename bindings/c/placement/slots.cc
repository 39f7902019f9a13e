// Slots of replicas and instances; see slots.h.

#include "bindings/c/placement/slots.h"

#include <gpushare/gpushare.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gpushare::abi {
namespace {

using models::placement::Cluster;
using models::placement::GpuLoad;
using models::placement::kNone;
using models::placement::Move;
using models::placement::Placement;

static_assert(kNone == GPUSHARE_NO_GPU, "a slot without a GPU is the same on both sides");

// The slots of one app. `places` are its GPUs in a placement, ascending; `moves` those of the app;
// `out` is all GPUSHARE_NO_GPU.
void FillSlots(absl::Span<const int32_t> running, absl::Span<const int32_t> places,
               std::vector<Move> moves, absl::Span<int32_t> out) {
  std::vector<size_t> runs;  // slots that run, by their GPU
  for (size_t i = 0; i < running.size(); ++i) {
    if (running[i] != GPUSHARE_NO_GPU) runs.push_back(i);
  }
  std::stable_sort(runs.begin(), runs.end(),
                   [&](size_t a, size_t b) { return running[a] < running[b]; });
  std::sort(moves.begin(), moves.end(),
            [](const Move& a, const Move& b) { return a.from < b.from; });
  std::vector<int32_t> taken;  // places of running slots
  auto place = places.begin();
  auto move = moves.begin();
  for (const size_t slot : runs) {
    place = std::lower_bound(place, places.end(), running[slot]);
    if (place != places.end() && *place == running[slot]) {
      out[slot] = *place++;
    } else if (move != moves.end() && move->from == running[slot]) {
      out[slot] = (move++)->to;
    } else {
      continue;
    }
    taken.push_back(out[slot]);
  }
  std::sort(taken.begin(), taken.end());
  std::vector<int32_t> open;  // for new slots; there are at least as many
  std::set_difference(places.begin(), places.end(), taken.begin(), taken.end(),
                      std::back_inserter(open));
  size_t next = 0;
  for (size_t i = 0; i < out.size() && next < open.size(); ++i) {
    if (i >= running.size() || running[i] == GPUSHARE_NO_GPU) out[i] = open[next++];
  }
}

}  // namespace

int64_t SlotsOf(const Cluster& cluster) {
  int64_t slots = 0;
  for (const auto& app : cluster.lc) slots += app.replicas;
  for (const auto& app : cluster.be) slots += app.instances;
  return slots;
}

absl::Status AddRunning(absl::Span<const int32_t> running, Cluster& cluster) {
  if (running.empty()) return absl::OkStatus();
  int32_t gpus = 0;
  for (const auto& group : cluster.gpus) gpus += group.count;
  cluster.running_at.reserve(running.size());
  size_t slot = 0;
  int32_t app = 0;
  const auto add = [&](const std::string& name, int32_t slots) -> absl::Status {
    for (const size_t end = slot + static_cast<size_t>(slots); slot < end; ++slot) {
      const int32_t gpu = running[slot];
      if (gpu == GPUSHARE_NO_GPU) continue;
      if (gpu < 0 || gpu >= gpus) {
        return absl::InvalidArgumentError(absl::StrCat("running[", slot, "], of app '", name,
                                                       "', is ", gpu, ", and a GPU is from 0 to ",
                                                       gpus - 1, ", or GPUSHARE_NO_GPU (-1)."));
      }
      cluster.running_at.push_back({.gpu = gpu, .app = app});
    }
    ++app;
    return absl::OkStatus();
  };
  for (const auto& lc : cluster.lc) {
    if (absl::Status status = add(lc.name, lc.replicas); !status.ok()) return status;
  }
  for (const auto& be : cluster.be) {
    if (absl::Status status = add(be.name, be.instances); !status.ok()) return status;
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
  std::vector<std::vector<Move>> moves(places.size());
  for (const Move& move : placement.moves) {
    moves[cluster.lc.size() + static_cast<size_t>(move.be)].push_back(move);
  }
  std::vector<int32_t> out(static_cast<size_t>(SlotsOf(cluster)), GPUSHARE_NO_GPU);
  size_t slot = 0;
  const auto fill = [&](size_t app, int32_t slots) {
    const auto count = static_cast<size_t>(slots);
    FillSlots(running.empty() ? running : running.subspan(slot, count), places[app],
              std::move(moves[app]), absl::MakeSpan(out).subspan(slot, count));
    slot += count;
  };
  for (size_t i = 0; i < cluster.lc.size(); ++i) fill(i, cluster.lc[i].replicas);
  for (size_t i = 0; i < cluster.be.size(); ++i) {
    fill(cluster.lc.size() + i, cluster.be[i].instances);
  }
  return out;
}

}  // namespace gpushare::abi

// The interference model. See interference.h and README.md.

#include "src/sim/physics/interference.h"

#include <algorithm>

#include "src/sim/physics/tuning.h"

namespace gpushare::sim {

double SharedSmFactor(absl::Span<const SmClient> clients, bool counted) {
  if (clients.size() < 2) return 1;
  double issue = 0;
  double tensor = 0;
  double special = 0;
  double serial = 0;
  bool starves = false;
  for (const SmClient& client : clients) {
    issue += client.issue;
    tensor += client.tensor;
    special += client.special;
    serial += client.speed;
    starves = starves || client.issue >= kFullIssue;
  }
  // Overlap comes from complementary bottlenecks (Kernelet 4.3, docs/hardware.md): the busiest pipe
  // limits all clients. A kernel at full issue rate leaves no slot to share.
  const double waits = counted ? 1 + kCountedSerialShare * (serial - 1) : 0;
  const double load = std::max({1.0, issue, tensor, special, waits, starves ? serial : 0.0});
  return 1 / load;
}

namespace {

// Weighted max-min shares of one unit of bandwidth. A client that asks for less than its share gets
// all of it. The others share the rest in proportion to their outstanding requests.
void ShareDram(absl::Span<MemoryClient> clients) {
  double asked = 0;
  for (const MemoryClient& client : clients) asked += client.dram * client.factor;
  if (asked <= 1) return;
  double capacity = 1;
  double weight = 0;
  for (const MemoryClient& client : clients) {
    if (client.dram > 0) weight += std::max(client.weight, 1e-9);
  }
  // Each round settles at least one client, or all that remain.
  constexpr double kSettled = -1;
  for (size_t round = 0; round <= clients.size(); ++round) {
    bool settled = false;
    for (MemoryClient& client : clients) {
      if (client.dram <= 0 || client.weight == kSettled) continue;
      const double need = client.dram * client.factor;
      const double own = std::max(client.weight, 1e-9);
      if (need <= capacity * own / weight) {
        capacity -= need;
        weight -= own;
        client.weight = kSettled;
        settled = true;
      }
    }
    if (!settled) break;
  }
  for (MemoryClient& client : clients) {
    if (client.dram <= 0 || client.weight == kSettled) continue;
    const double own = std::max(client.weight, 1e-9);
    client.factor = std::min(client.factor, capacity * own / weight / client.dram);
  }
}

}  // namespace

void ShareMemory(absl::Span<MemoryClient> clients) {
  if (clients.size() < 2) {
    for (MemoryClient& client : clients) client.factor = 1;
    return;
  }
  double l2 = 0;
  for (const MemoryClient& client : clients) l2 += client.l2;
  for (MemoryClient& client : clients) {
    client.factor = 1 / (1 + kL2Contention * client.sensitivity * (l2 - client.l2));
    if (client.l2 > 0 && l2 > 1) client.factor = std::min(client.factor, 1 / l2);
  }
  ShareDram(clients);
}

}  // namespace gpushare::sim

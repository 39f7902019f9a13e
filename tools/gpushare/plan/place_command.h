// `gpushare place`: which GPU of a cluster has which apps, what that is worth, and who has none.
//
// Pure but for the file that it reads; no runtime is opened, and no GPU is needed. Threads: one.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PLAN_PLACE_COMMAND_H_
#define GPUSHARE_TOOLS_GPUSHARE_PLAN_PLACE_COMMAND_H_

#include <string>

#include "src/models/placement/cluster.h"
#include "src/models/placement/placer.h"

namespace gpushare::tool {

struct PlaceRequest {
  std::string file;
  models::placement::PlaceOptions options;
};

struct Placed {
  models::placement::Cluster cluster;
  models::placement::PlaceOptions options;
  models::placement::Placement placement;
};

// "random", "first-fit", "greedy" or "assignment".
models::placement::Algorithm AlgorithmOf(const std::string& option, const std::string& text);

// InputError: the file or an option is not usable.
Placed PlaceCluster(const PlaceRequest& request);

// A row for each GPU, up to a number of them, who has no GPU and why, and the sums.
std::string TextOf(const Placed& placed);
// docs/command.md has the members.
std::string JsonOf(const Placed& placed);
// One sentence of who has no GPU; empty: all have one.
std::string UnplacedText(const Placed& placed);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PLAN_PLACE_COMMAND_H_

// `gpushare place`: which GPU of a cluster has which apps, what that is worth, and who has none.
//
// No GPU is needed: pairs are predicted by a runtime on the simulated device. Threads: one.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PLAN_PLACE_COMMAND_H_
#define GPUSHARE_TOOLS_GPUSHARE_PLAN_PLACE_COMMAND_H_

#include <string>
#include <vector>

#include "src/models/placement/cluster.h"
#include "src/models/placement/placer.h"

namespace gpushare::tool {

struct PlaceRequest {
  std::string file;
  std::string predict;  // scenario of the kinds; empty: pairs without a row are not allowed
  models::placement::PlaceOptions options;
};

struct Placed {
  models::placement::Cluster cluster;
  models::placement::PlaceOptions options;
  models::placement::Placement placement;
  std::vector<models::placement::PairRow> predicted;  // with --predict
  std::vector<std::string> not_predicted;             // sentences
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

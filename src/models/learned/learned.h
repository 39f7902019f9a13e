// What a cost model has learned, as the text that a profile keeps of it.
//
// OnlineModel::Save() and Load() convert their state to and from these structs. Invariant: a text
// is taken completely or not at all; every value of a parsed text is within its range. Threads:
// any.

#ifndef GPUSHARE_SRC_MODELS_LEARNED_LEARNED_H_
#define GPUSHARE_SRC_MODELS_LEARNED_LEARNED_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/models/co_resident/model.h"
#include "src/models/durations/eviction_model.h"
#include "src/models/durations/kernel_durations.h"
#include "src/models/durations/linear_model.h"
#include "src/models/durations/query_models.h"
#include "src/models/durations/size_table.h"
#include "src/models/json/json_document.h"
#include "src/models/library/library_state.h"
#include "src/models/pairs/co_run_speeds.h"
#include "src/models/pairs/neighbour_model.h"
#include "src/models/pairs/pair_model.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

struct LearnedKernel {
  std::string name;
  LinearState solo;
  DurationShape shape = {};
  // Of a graph: how many segments it had when the next two were measured. 0: no graph.
  int64_t segments = 0;
  EvictionState eviction;
  FollowedMean blocking;
  NeighbourState neighbours = {};
  CopySpeeds beside_copies = {};
};

// A fused kernel's curve as points (fused_model.h).
struct LearnedFused {
  std::string name;
  double error = 0;  // of its runs, one standard deviation
  std::vector<FusedPoint> points;
};

// The speed of a kernel on `sms` SMs while the neighbour runs on the others.
struct LearnedPair {
  std::string kernel;
  std::string neighbour;
  int32_t sms = 0;
  FollowedMean speed;
};

// What runs showed of a kernel beside another one's workers on every SM.
struct LearnedCoRun {
  std::string kernel;
  std::string neighbour;
  CoRunPoint point;
};

// Measured over expected time of copies, by their size.
struct CopyTable {
  int64_t samples = 0;
  double error = 0;  // relative, smoothed
  std::vector<SizeTable::Point> points;
};

struct LearnedCopies {
  int32_t direction = 0;
  bool pinned = false;
  LinearState line;
  CopyTable table = {};
};

struct Learned {
  std::vector<LearnedKernel> kernels;
  std::vector<LearnedCopies> copies;
  std::vector<LearnedPair> pairs;
  std::vector<LearnedCoRun> co_runs;
  std::vector<LearnedFused> fused;
  co_resident::State co_resident;
  LibraryState library;
  std::vector<LearnedQueries> queries;
};

absl::StatusOr<Learned> ParseLearned(const std::string& text);
// Of a text that was parsed before; the same checks.
absl::StatusOr<Learned> ReadLearned(const JsonDocument& json);
std::string FormatLearned(const Learned& learned);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_LEARNED_LEARNED_H_

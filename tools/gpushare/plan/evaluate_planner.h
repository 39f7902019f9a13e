// `gpushare evaluate-planner`: figures 3.4 to 3.6 of the thesis for random task sets.
//
// Threads: as many as the machine has; each point of a figure is one job.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PLAN_EVALUATE_PLANNER_H_
#define GPUSHARE_TOOLS_GPUSHARE_PLAN_EVALUATE_PLANNER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/models/partition/evaluate.h"

namespace gpushare::tool {

struct EvaluatePlannerRequest {
  models::partition::EvaluationOptions options;
  std::vector<double> utilisations;  // empty: 2 to the SMs by 2
  bool quiet = false;
};

struct PlannerEvaluation {
  EvaluatePlannerRequest request;
  std::vector<models::partition::PointResult> points;
};

// InputError: a value outside its range.
PlannerEvaluation EvaluatePlanner(EvaluatePlannerRequest request);

// The numbers of a list such as "20,34,40".
std::vector<double> UtilisationsOf(const std::string& text);

// "concurrent", "exclusive" or "evictable".
models::partition::Analysis AnalysisOf(const std::string& option, const std::string& text);
const char* NameOf(models::partition::Analysis analysis);

// Schedulability and times, a row for each utilisation.
std::string TextOf(const PlannerEvaluation& evaluation);
// docs/command.md has the members.
std::string JsonOf(const PlannerEvaluation& evaluation);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PLAN_EVALUATE_PLANNER_H_

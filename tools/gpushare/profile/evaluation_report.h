// What `gpushare evaluate-models` prints and writes: a table, a page with plots, JSON.
//
// Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PROFILE_EVALUATION_REPORT_H_
#define GPUSHARE_TOOLS_GPUSHARE_PROFILE_EVALUATION_REPORT_H_

#include <string>
#include <vector>

#include "tools/gpushare/profile/evaluation.h"

namespace gpushare::tool {

// Errors are shares of what was measured.
std::string EvaluationTable(const std::vector<ModelRows>& models);
// One page, without a network: the table, and predicted against measured with a band of 10 %.
std::string EvaluationPage(const std::vector<ModelRows>& models, const std::string& samples);
std::string EvaluationJson(const std::vector<ModelRows>& models, const std::string& samples);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PROFILE_EVALUATION_REPORT_H_

// rows.json of a partial set: the rows of the cases that a stopped run had finished, so that
// `gpushare colocate --resume` runs only the rest.
//
// It has every number of a row exactly, unlike result.json, and what the rows were made with. Rows
// that were made with something else are refused.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COLOCATE_FINISHED_ROWS_H_
#define GPUSHARE_TOOLS_GPUSHARE_COLOCATE_FINISHED_ROWS_H_

#include <string>
#include <vector>

#include "tools/gpushare/colocate/colocate.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {

// Writes rows.json and events/index.json into `folder`: the cases that `result` has.
void SaveFinishedRows(const Scenario& scenario, const ColocateOptions& options,
                      const ColocateResult& result, const std::string& folder);

// What a stopped run left in `folder`; nothing if it left no rows.json. InputError for a corrupt
// file.
FinishedRows LoadFinishedRows(const std::string& folder);

// All that decides the rows, as text: one "key": value for each member. Rows with equal texts can
// be joined.
std::string MadeWith(const Scenario& scenario, const ColocateOptions& options,
                     const ColocateResult& result);

// Both texts are of MadeWith. InputError if they differ: a sentence that `set` begins ("The partial
// set") and that names what differs.
void RequireMadeWith(const std::string& set, const std::string& before_text,
                     const std::string& now_text);

// InputError that names what differs if the rows were made with something else.
void RequireSameOrigin(const FinishedRows& rows, const std::string& made_with);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COLOCATE_FINISHED_ROWS_H_

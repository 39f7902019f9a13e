#include "tools/gpushare/command/colocate_command.h"

#include <filesystem>
#include <set>
#include <system_error>

#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/interrupt.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/colocate/finished_rows.h"
#include "tools/gpushare/colocate/result_set.h"
#include "tools/gpushare/command/rethrow.h"
#include "tools/gpushare/events/event_index.h"
#include "tools/gpushare/report/report_html.h"
#include "tools/gpushare/report/result.h"
#include "tools/gpushare/report/table.h"

namespace gpushare::tool {

namespace {

// Removes the logs of runs that are in no finished case, and a trace of such a run.
void RemoveUnfinished(const ColocateResult& result, const std::string& folder) {
  std::error_code ignored;
  std::set<std::string> logs;
  bool traced = false;
  for (const EventIndexEntry& entry : result.events) {
    logs.insert(std::filesystem::path(entry.file).filename().string());
    traced |= entry.chosen;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/events", ignored)) {
    if (logs.count(entry.path().filename().string()) == 0) {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
  if (!traced) std::filesystem::remove(folder + "/trace.pftrace", ignored);
}

void WriteSet(const Scenario& scenario, const ColocateResult& result,
              const MeasuredResults& measured, const std::string& folder) {
  RemoveUnfinished(result, folder);
  WriteFile(folder + "/events/index.json", FormatEventIndex(result.events));
  WriteFile(folder + "/report.html", FormatReport(scenario, result, folder, measured));
  WriteFile(folder + "/result.json", FormatResult(scenario, result));
}

std::string EarlierText(const ResultSet& set) {
  if (!set.HasEarlierResults()) return "";
  return " The earlier results in '" + set.folder() + "' are unchanged.";
}

std::string ResumeText(const ResultSet& set) {
  return " is a partial set in '" + set.partial() +
         "'; the same command with --resume runs the rest.";
}

// Keeps the finished cases of a run that stopped, and says what is where.
[[noreturn]] void KeepPartialSet(const Scenario& scenario, const ColocateOptions& options,
                                 const ColocateResult& result, const MeasuredResults& measured,
                                 ResultSet& set) {
  const std::string more = EarlierText(set);
  if (result.cases_finished == 0) {
    Rethrow(result.stopped,
            more + Format(" None of the %zu cases was finished, so nothing is kept; "
                          "the same command starts again.",
                          result.missing_cases.size()));
  }
  try {
    SaveFinishedRows(scenario, options, result, set.partial());
    set.KeepPartial(true);
    WriteSet(scenario, result, measured, set.partial());
  } catch (const std::exception& error) {
    Rethrow(result.stopped, more + " The finished cases cannot be written: " + error.what() +
                                (set.keeps_partial() ? " What was saved" + ResumeText(set) : ""));
  }
  Rethrow(result.stopped, more +
                              Format(" What is finished, %zu of %zu cases,", result.cases_finished,
                                     result.cases_finished + result.missing_cases.size()) +
                              ResumeText(set));
}

// A complete run whose files cannot be written. On a real device its rows are saved.
[[noreturn]] void FailToWrite(const std::exception_ptr& failure, const ResultSet& set) {
  Rethrow(failure,
          EarlierText(set) + (set.keeps_partial() ? " What is finished" + ResumeText(set) : ""));
}

ColocateResult RunIntoFolder(const Scenario& scenario, ColocateOptions& options,
                             const MeasuredResults& measured, const ColocateOutput& output) {
  ResultSet set(output.folder);
  options.out = set.partial();
  if (output.resume) {
    set.KeepPartial(true);  // also when its rows are refused
    options.finished = LoadFinishedRows(set.partial());
    set.KeepPartial(!options.finished.runs.empty());
  }
  options.begin = [&](const ColocateResult& opened) {
    RequireSameOrigin(options.finished, MadeWith(scenario, options, opened));
    if (!output.resume) set.Empty();
  };
  options.save = [&](const ColocateResult& so_far) {
    SaveFinishedRows(scenario, options, so_far, set.partial());
    set.KeepPartial(true);
  };
  ColocateResult result = Colocate(scenario, options);
  if (result.stopped != nullptr) KeepPartialSet(scenario, options, result, measured, set);
  try {
    WriteSet(scenario, result, measured, set.partial());
    set.Publish();
  } catch (const std::exception&) {
    FailToWrite(std::current_exception(), set);
  }
  return result;
}

}  // namespace

void RunColocateCommand(const Scenario& scenario, ColocateOptions options,
                        const MeasuredResults& measured, const ColocateOutput& output) {
  const InterruptGuard guard;
  const ColocateResult result = output.folder.empty()
                                    ? Colocate(scenario, options)
                                    : RunIntoFolder(scenario, options, measured, output);
  if (result.stopped != nullptr) Rethrow(result.stopped, " Nothing was written.");
  if (output.json) return Print(FormatResult(scenario, result));
  Print(FormatTable(scenario, result, measured) + "\nReport: " + output.folder + "/report.html\n");
}

}  // namespace gpushare::tool

// The faults of docs/reliability.md that need a GPU. Each case runs in a process of its own with a
// time limit. One line a case on stderr, one JSON object on stdout. 1: a promise was broken.
//
// Use: faults_benchmark [--cases a,b,...] [--list]
//      faults_benchmark --run CASE    that case, in this process

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "benchmarks/faults/cases.h"
#include "benchmarks/faults/processes.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/json.h"

namespace gpushare::benchmarks {
namespace {

std::vector<FaultCase> AllCases() {
  std::vector<FaultCase> all;
  for (const auto& topic :
       {HangCases(), ErrorCases(), ResourceCases(), CallCases(), LatencyCases()}) {
    all.insert(all.end(), topic.begin(), topic.end());
  }
  return all;
}

int RunHere(const std::string& name) {
  for (const FaultCase& fault : AllCases()) {
    if (name != fault.name) continue;
    PrintLine(fault.run());
    std::fflush(stdout);
    // Neither CUDA's nor the library's destructors matter to a case that has passed.
    std::_Exit(0);
  }
  throw Failure("There is no case '" + name + "'.", kBadUse);
}

void RequireKnown(const std::vector<std::string>& chosen) {
  const std::vector<FaultCase> all = AllCases();
  for (const std::string& name : chosen) {
    const bool known = std::any_of(all.begin(), all.end(),
                                   [&](const FaultCase& fault) { return name == fault.name; });
    if (!known) throw Failure("There is no case '" + name + "'; --list prints them.", kBadUse);
  }
}

std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "it said nothing";
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
}

struct Verdict {
  const char* state;
  std::string note;
};

Verdict Judge(const FaultCase& fault, const ChildResult& result) {
  if (result.exit_code == 0) return {"ok", ""};
  if (result.exit_code == kNoGpu) return {"skipped", LastLine(result.errors)};
  if (result.cut_off) {
    return {"FAILED", "cut off after " + std::to_string(fault.seconds_max) + " s"};
  }
  if (result.signal == 0) return {"FAILED", LastLine(result.errors)};
  const std::string death = std::string("ended by ") + strsignal(result.signal);
  return {fault.may_die ? "died" : "FAILED", death};
}

Json RowOf(const FaultCase& fault, const ChildResult& result, const Verdict& verdict) {
  Json row = {{"case", fault.name},
              {"state", verdict.state},
              {"seconds", Rounded(result.seconds, 2)},
              {"promise", fault.promise}};
  if (!verdict.note.empty()) row["note"] = verdict.note;
  const Json figures = Json::parse(result.output, nullptr, false);
  if (figures.is_object()) row["figures"] = figures;
  return row;
}

int Run(Arguments& given) {
  const std::string here = given.Text("--run", "");
  const bool list = given.Has("--list");
  const std::vector<std::string> chosen = given.List("--cases", {});
  given.Finish();
  RequireKnown(chosen);
  if (!here.empty()) return RunHere(here);
  if (list) {
    for (const FaultCase& fault : AllCases()) std::printf("%s: %s\n", fault.name, fault.promise);
    return 0;
  }
  int failed = 0;
  int ran = 0;
  Report report({{"experiment", "faults"}}, "cases");
  for (const FaultCase& fault : AllCases()) {
    if (!IsChosen(chosen, fault.name)) continue;
    const ChildResult result = RunChild(fault.name, fault.seconds_max);
    const Verdict verdict = Judge(fault, result);
    const Json row = RowOf(fault, result, verdict);
    report.Row(row);
    const Json figures = row.value("figures", Json::object());
    std::fprintf(stderr, "%-26s %-8s %5.1f s  %s%s\n", fault.name, verdict.state, result.seconds,
                 verdict.note.c_str(), figures.empty() ? "" : figures.dump().c_str());
    ran += std::strcmp(verdict.state, "skipped") == 0 ? 0 : 1;
    failed += std::strcmp(verdict.state, "FAILED") == 0 ? 1 : 0;
  }
  report.End({{"ran", ran}, {"failed", failed}});
  std::fprintf(stderr, "%d cases, %d FAILED\n", ran, failed);
  if (failed > 0) return kFailed;
  return ran == 0 ? kNoGpu : 0;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("faults_benchmark", argc, argv, gpushare::benchmarks::Run);
}

// Judges durations on fewer SMs: a / m + b alone and beside a neighbour, and the knee that counters
// tell.
//
// The line is fitted to the other sizes of the kernel. The knee's constants are the model's own.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/models/durations/thesis_scaling.h"
#include "src/models/evaluation/judged.h"
#include "src/models/samples/hold_out.h"
#include "src/models/samples/row_times.h"
#include "src/models/training/row_counters.h"

namespace gpushare::models {
namespace {

constexpr size_t kSizesLeast = 3;  // to fit a and b, and see an error

using Counted = std::map<std::string, core::KernelCounters>;

struct Curve {
  std::vector<TimeOnSms> training;
  std::vector<const SampleRow*> judged;
  double whole_ns = 0;  // on all SMs
};

Counted CountersOfAll(const Samples& samples) {
  Counted counted;
  for (const SampleRow& row : samples.rows) {
    if (row.what == SampleKind::kCounters) counted[row.kernel] = CountersOf(row);
  }
  return counted;
}

// Workers, graphs and library calls run in places; ordinary grids do not.
bool RunsInPlaces(const SampleRow& row) {
  return row.workers_per_sm == 0 && row.sms > 0 && !row.ns.empty() &&
         (row.form == core::Form::kWorkers || row.form == core::Form::kGraph ||
          row.form == core::Form::kLibrary);
}

void AddRow(const SampleRow& row, int32_t sm_count, Curve& curve) {
  if (row.sms == sm_count) curve.whole_ns = Median(row.ns);
  if (!IsHeldOut(row)) {
    curve.training.push_back({row.sms, Median(row.ns)});
  } else if (row.sms < sm_count) {
    curve.judged.push_back(&row);
  }
}

// Curves of the whole sample task: a smaller one has other rounds.
std::map<std::string, Curve> CurvesAlone(const Samples& samples) {
  std::map<std::string, int64_t> largest;
  const auto counts = [](const SampleRow& row) {
    return row.what == SampleKind::kSolo && RunsInPlaces(row);
  };
  for (const SampleRow& row : samples.rows) {
    int64_t& most = largest[row.kernel];
    if (counts(row)) most = std::max(most, row.block_tasks);
  }
  std::map<std::string, Curve> curves;
  for (const SampleRow& row : samples.rows) {
    if (counts(row) && row.block_tasks == largest[row.kernel]) {
      AddRow(row, samples.head.sm_count, curves[row.kernel]);
    }
  }
  return curves;
}

// Graphs, whose times the device takes, beside the counted kernels of one kind. The thesis has one
// line for all of these neighbours.
std::map<std::string, Curve> CurvesBeside(const Samples& samples, const Counted& counted,
                                          Intensity kind) {
  std::map<std::string, Curve> curves;
  for (const SampleRow& row : samples.rows) {
    if (row.what != SampleKind::kBeside || row.same_sms || row.form != core::Form::kGraph) continue;
    const auto neighbour = counted.find(row.neighbour);
    if (neighbour == counted.end() || !RunsInPlaces(row)) continue;
    if (CountedIntensity(neighbour->second) != kind) continue;
    AddRow(row, samples.head.sm_count, curves[row.kernel]);
  }
  return curves;
}

std::string SubjectOn(const SampleRow& row) {
  std::string subject = absl::StrCat(row.kernel, " on ", row.sms, " SMs");
  if (!row.neighbour.empty()) absl::StrAppend(&subject, " beside ", row.neighbour);
  return subject;
}

void JudgeLine(const char* family, const Curve& curve, std::vector<Judged>& out) {
  if (curve.training.size() < kSizesLeast) return;
  const TimeOverSms line = FitTimeOverSms(curve.training);
  for (const SampleRow* row : curve.judged) {
    out.push_back({family, "a / m + b", SubjectOn(*row), line.NsOn(row->sms), Median(row->ns)});
  }
}

void JudgeCounted(const char* family, const Curve& curve, const core::KernelCounters& counters,
                  int32_t sm_count, std::vector<Judged>& out) {
  if (curve.whole_ns <= 0) return;
  for (const SampleRow* row : curve.judged) {
    const double known = CountedSpeedOnSms(counters, row->sms, sm_count);
    const double proportion = CountedSpeedOnSms({}, row->sms, sm_count);
    const double measured = Median(row->ns);
    out.push_back(
        {family, "knee from counters", SubjectOn(*row), curve.whole_ns / known, measured});
    out.push_back(
        {family, "in proportion", SubjectOn(*row), curve.whole_ns / proportion, measured});
  }
}

}  // namespace

void JudgeScaling(const Samples& samples, std::vector<Judged>& out) {
  const Counted counted = CountersOfAll(samples);
  const int32_t sm_count = samples.head.sm_count;
  for (const auto& [kernel, curve] : CurvesAlone(samples)) {
    const auto counters = counted.find(kernel);
    if (counters == counted.end()) {
      JudgeLine("others on fewer SMs", curve, out);
      continue;
    }
    JudgeLine("kernels on fewer SMs", curve, out);
    JudgeCounted("kernels on fewer SMs", curve, counters->second, sm_count, out);
  }
  for (const auto& [kind, family] : {std::pair(Intensity::kMemory, "beside memory kind"),
                                     std::pair(Intensity::kCompute, "beside compute kind")}) {
    for (const auto& [kernel, curve] : CurvesBeside(samples, counted, kind)) {
      JudgeLine(family, curve, out);
    }
  }
}

}  // namespace gpushare::models

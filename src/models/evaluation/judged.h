// A prediction beside what was measured: the rows by which models are judged.
//
// Plain data. Each judge takes all rows of a samples file, trains a model with the rows that may
// train it, and appends what it predicts for the held-out ones. No row does both.

#ifndef GPUSHARE_SRC_MODELS_EVALUATION_JUDGED_H_
#define GPUSHARE_SRC_MODELS_EVALUATION_JUDGED_H_

#include <string>
#include <vector>

#include "src/models/samples/samples_file.h"

namespace gpushare::models {

struct Judged {
  std::string family;   // what is predicted: "workers", "pinned copies", "fused kernels"
  std::string model;    // how
  std::string subject;  // of what
  double predicted = 0;
  double measured = 0;
};

// Durations in ns.
void JudgeKernels(const Samples& samples, std::vector<Judged>& out);
void JudgeCopies(const Samples& samples, std::vector<Judged>& out);
void JudgeQueries(const Samples& samples, std::vector<Judged>& out);
void JudgeLibraryCalls(const Samples& samples, std::vector<Judged>& out);
// Copies beside kernels: durations in ns; else what is kept of the speed.
void JudgeCopyContention(const Samples& samples, std::vector<Judged>& out);
// Durations over the TC part's own.
void JudgeFused(const Samples& samples, std::vector<Judged>& out);
// Speeds over those without the neighbour.
void JudgeNeighbours(const Samples& samples, std::vector<Judged>& out);

// Durations on fewer SMs, in ns.
void JudgeScaling(const Samples& samples, std::vector<Judged>& out);

// Two kernels on the same SMs (shared_sm_report.h), by Kernelet's chain, by it with pipes, and by
// ours.
void JudgeMarkov(const Samples& samples, std::vector<Judged>& out);
void JudgeMarkovPipes(const Samples& samples, std::vector<Judged>& out);
void JudgeCoResident(const Samples& samples, std::vector<Judged>& out);

// All of them.
std::vector<Judged> JudgeModels(const Samples& samples);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_EVALUATION_JUDGED_H_

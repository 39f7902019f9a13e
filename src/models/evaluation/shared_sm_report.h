// What a model of two kernels on the same SMs is judged by: speeds, IPC, the throughput of pairs
// and the choice of a neighbour.
//
// Pure. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_EVALUATION_SHARED_SM_REPORT_H_
#define GPUSHARE_SRC_MODELS_EVALUATION_SHARED_SM_REPORT_H_

#include <string>
#include <vector>

#include "src/models/evaluation/counted_kernels.h"
#include "src/models/evaluation/judged.h"

namespace gpushare::models {

// A held-out row and what a model says of its timed kernel.
struct JudgedSharedSm {
  SharedSm shared;
  double speed = 0;      // relative to alone with all workers
  double ipc_share = 0;  // of the peak of an SM
};

// Warp instructions that the timed kernel issues, as a share of the peak of an SM.
double MeasuredIpcShare(const SharedSm& shared, int32_t sm_count);

void ReportSpeeds(const std::string& model, const std::vector<JudgedSharedSm>& rows,
                  std::vector<Judged>& out);
void ReportIpc(const std::string& model, const std::vector<JudgedSharedSm>& rows, int32_t sm_count,
               std::vector<Judged>& out);
// The sum of both speeds, 1 / (1 - CP) of Kernelet's eq. 1, of pairs that were measured both ways;
// and for each kernel the sum beside the neighbour that the model chooses, against that beside the
// best one.
void ReportThroughput(const std::string& model, const std::vector<JudgedSharedSm>& rows,
                      std::vector<Judged>& out);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_EVALUATION_SHARED_SM_REPORT_H_

// Times the forms of a task alone on the device: original grid, workers, slices. For benchmarks.
//
// Times are of events around the launches, and of events alone: no time of the host between two
// launches of one measurement is in them unless the host is slower than the device. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_FORM_TIMER_H_
#define GPUSHARE_BENCHMARKS_GPU_FORM_TIMER_H_

#include <cstdint>
#include <vector>

#include "benchmarks/kernels/form_launcher.h"

struct CUevent_st;

namespace gpushare::kernels {

double Median(std::vector<double> values);                       // 0 of none
double QuantileOf(std::vector<double> values, double quantile);  // nearest rank, 0 of none

class EventTimer {
 public:
  EventTimer();
  ~EventTimer();
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;

  void Begin(CUstream_st* stream);
  void End(CUstream_st* stream);
  double Milliseconds();  // waits for the end

 private:
  CUevent_st* begin_ = nullptr;
  CUevent_st* end_ = nullptr;
};

// Each blocks until its launches have ended.
Status TimeOriginal(FormLauncher* launcher, const FormTask& task, EventTimer* timer, double* ms);
// A launch that does not execute all block tasks is an error.
Status TimeWorkers(FormLauncher* launcher, const FormTask& task, uint32_t claim_batch,
                   EventTimer* timer, double* ms);
// The whole task as slices of so many block tasks, back to back.
Status TimeSlices(FormLauncher* launcher, const FormTask& task, uint32_t slice, EventTimer* timer,
                  double* ms);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_GPU_FORM_TIMER_H_

// One condition that was measured several times: the rows that models are fitted to and judged by.
//
// A profile keeps medians, and these rows keep every repeat. Which fields count depends on `what`
// (docs/samples.md); the others stay as they are here. Plain data.

#ifndef GPUSHARE_SRC_MODELS_SAMPLES_SAMPLE_ROW_H_
#define GPUSHARE_SRC_MODELS_SAMPLES_SAMPLE_ROW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/core/base/types.h"
#include "src/core/seams/library_call.h"

namespace gpushare::models {

enum class SampleKind : uint8_t {
  kSolo = 0,        // a kernel alone, on the whole device or on some SMs
  kCopy = 1,        // a copy alone, or while copies run the other way
  kBeside = 2,      // a kernel while another runs, on its SMs or on the others
  kFused = 3,       // a fused kernel, and both of its parts alone
  kCounters = 4,    // what a profiler counts in one launch
  kCopyBeside = 5,  // a copy while a kernel runs, or a copy the other way
  kBesideCopy = 6,  // a kernel while a copy runs
};

struct CounterValue {
  std::string name;
  double value = 0;
};

struct SampleRow {
  SampleKind what = SampleKind::kSolo;
  std::string kernel;  // or the fused kernel; empty for copies
  core::Form form = core::Form::kOriginal;
  core::LibraryCall call;      // of a library call
  int64_t input_size = 0;      // of a whole query that has several; 0: it has not
  int64_t block_tasks = 0;     // kFused: of the TC part
  int32_t sms = 0;             // that it ran on
  int32_t workers_per_sm = 0;  // 0: as many as an SM holds, or not in the form of workers

  bool to_device = true;
  bool pinned = true;
  int64_t bytes = 0;
  bool both_ways = false;  // another copy of the size ran the other way

  std::string neighbour;      // kBeside, kCopyBeside; of a fused kernel the CD part
  std::string tensor;         // of a fused kernel the TC part
  int32_t tensor_blocks = 1;  // of a fused kernel: its ratio
  int32_t cuda_blocks = 1;
  int64_t neighbour_block_tasks = 0;
  int64_t neighbour_bytes = 0;  // kCopyBeside: of the pinned copy the other way; 0: a kernel
  int32_t load_percent = 0;     // kFused: the load ratio that was aimed at
  int32_t neighbour_sms = 0;
  int32_t neighbour_workers_per_sm = 0;
  bool same_sms = false;

  // Times of the repeats, in the order taken. Those of one repeat stand at the same index.
  std::vector<double> ns;
  std::vector<double> alone_ns;      // without the neighbour; kFused: the TC part
  std::vector<double> neighbour_ns;  // kFused: the CD part alone

  std::vector<CounterValue> counters;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_SAMPLES_SAMPLE_ROW_H_

// The ring of events behind a lane's marks. See lane_marks.h.

#include "src/cuda/lanes/lane_marks.h"

#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {

absl::Status LaneMarks::Open(const DriverApi& api, CUstream stream, uint64_t first,
                             uint64_t count) {
  count_ = count;
  for (uint64_t number = 0; number < count; ++number) {
    GPUSHARE_CU_RETURN(api, cuEventCreate(&At(number).event, CU_EVENT_DISABLE_TIMING));
  }
  GPUSHARE_CU_RETURN(api, cuEventRecord(At(0).event, stream));
  set_.store(first, std::memory_order_relaxed);
  reached_ = first;
  return absl::OkStatus();
}

void LaneMarks::Close(const DriverApi& api) {
  for (Mark& mark : marks_) {
    if (mark.event != nullptr) api.cuEventDestroy(mark.event);
    mark.event = nullptr;
  }
}

absl::Status LaneMarks::Set(const DriverApi& api, CUstream stream, uint64_t sequence) {
  const uint64_t written = written_.load(std::memory_order_relaxed);
  // acquire: the reader has finished with the event that is set again.
  if (written - read_.load(std::memory_order_acquire) == count_) return absl::OkStatus();
  Mark& mark = At(written);
  GPUSHARE_CU_RETURN(api, cuEventRecord(mark.event, stream));
  mark.sequence = sequence;
  set_.store(sequence, std::memory_order_relaxed);
  // release: a thread that sees the new count also sees the mark.
  written_.store(written + 1, std::memory_order_release);
  return absl::OkStatus();
}

uint64_t LaneMarks::Reached(const DriverApi& api) {
  uint64_t read = read_.load(std::memory_order_relaxed);
  while (read != written_.load(std::memory_order_acquire)) {
    const Mark& mark = At(read);
    const CUresult code = api.cuEventQuery(mark.event);
    if (code == CUDA_ERROR_NOT_READY || IsSticky(code)) break;
    if (code == CUDA_SUCCESS) {
      reached_ = mark.sequence;
    } else {
      lost_ = true;
    }
    read_.store(++read, std::memory_order_release);
  }
  return reached_;
}

}  // namespace gpushare::cuda

// The words of types.h as text; see names.h. No default case: the compiler names a forgotten word.

#include "src/core/log/names.h"

namespace gpushare::core {

const char* ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kNone:
      return "none";
    case Reason::kLcFirst:
      return "LC first";
    case Reason::kFastPath:
      return "fast path";
    case Reason::kBaseline:
      return "baseline";
    case Reason::kIdleDevice:
      return "idle device";
    case Reason::kFitsHeadroom:
      return "fits every headroom";
    case Reason::kFitsBlockingBudget:
      return "fits every blocking budget";
    case Reason::kBesidePartition:
      return "beside the LC partition";
    case Reason::kElasticReturn:
      return "back on the LC side";
    case Reason::kResume:
      return "resumed";
    case Reason::kQuota:
      return "within its quota";
    case Reason::kFillsGap:
      return "cut to fill a gap";
    case Reason::kHoldHeadroom:
      return "held: longer than a headroom";
    case Reason::kHoldBlocking:
      return "held: blocks longer than a budget";
    case Reason::kHoldLcActive:
      return "held: LC work is on its SMs";
    case Reason::kHoldQueuedTime:
      return "held: too much time is queued";
    case Reason::kHoldCopies:
      return "held: enough copies run";
    case Reason::kHoldWindow:
      return "held: its lane is full";
    case Reason::kHoldCapSm:
      return "held: no CapSM is left";
    case Reason::kHoldHysteresis:
      return "held: LC drained only just now";
    case Reason::kHoldQuiesced:
      return "held: quiesced";
    case Reason::kEvictForLc:
      return "evicted for LC";
    case Reason::kEvictForReservation:
      return "evicted for a reservation";
    case Reason::kEvictForLayout:
      return "evicted for another layout";
    case Reason::kEvictForQuota:
      return "evicted: its quota shrank";
    case Reason::kUserPolicy:
      return "user policy";
  }
  return "unknown";
}

const char* OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFinished:
      return "finished";
    case Outcome::kEvicted:
      return "evicted";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kDeviceLost:
      return "device lost";
  }
  return "unknown";
}

const char* FormName(Form form) {
  switch (form) {
    case Form::kOriginal:
      return "original";
    case Form::kWorkers:
      return "workers";
    case Form::kSlice:
      return "slice";
    case Form::kFused:
      return "fused";
    case Form::kGraph:
      return "graph";
    case Form::kLibrary:
      return "library";
    case Form::kMemcpy:
      return "memcpy";
    case Form::kOpaque:
      return "opaque";
  }
  return "unknown";
}

}  // namespace gpushare::core

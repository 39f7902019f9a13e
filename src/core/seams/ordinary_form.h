// The forms in which a task goes to the device: the ordinary one, and the one that can be evicted.

#ifndef GPUSHARE_SRC_CORE_SEAMS_ORDINARY_FORM_H_
#define GPUSHARE_SRC_CORE_SEAMS_ORDINARY_FORM_H_

#include "src/core/base/types.h"

namespace gpushare::core {

constexpr Form OrdinaryForm(TaskKind kind) {
  switch (kind) {
    case TaskKind::kKernel:
      return Form::kOriginal;
    case TaskKind::kGraph:
      return Form::kGraph;
    case TaskKind::kLibrary:
      return Form::kLibrary;
    case TaskKind::kMemcpy:
      return Form::kMemcpy;
    case TaskKind::kOpaque:
      return Form::kOpaque;
  }
  return Form::kOriginal;
}

// Of a task that can be evicted: a kernel with a worker form, or a graph that was cut.
constexpr Form EvictableForm(TaskKind kind) {
  return kind == TaskKind::kGraph ? Form::kSegments : Form::kWorkers;
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_ORDINARY_FORM_H_

// The check of a library call's shapes. See kernel_check.h.

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/core/base/limits.h"
#include "src/core/checks/kernel_check.h"

namespace gpushare::core {
namespace {

struct Dimension {
  absl::string_view field;
  int64_t value;
};

absl::Status Bad(const std::string& name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("Library call '", name, "' ", what));
}

absl::Status CheckDimensions(const std::string& name, std::initializer_list<Dimension> needed) {
  for (const Dimension& dimension : needed) {
    if (dimension.value >= 1 && dimension.value <= kMaxTensorDimension) continue;
    return Bad(name, absl::StrCat("has the ", dimension.field, " ", dimension.value,
                                  ", and it must lie between 1 and ", kMaxTensorDimension, "."));
  }
  return absl::OkStatus();
}

absl::Status CheckUnused(const std::string& name, std::initializer_list<Dimension> unused) {
  for (const Dimension& dimension : unused) {
    if (dimension.value == 0) continue;
    return Bad(name, absl::StrCat("has the ", dimension.field, " ", dimension.value,
                                  ", and its operation does not use it."));
  }
  return absl::OkStatus();
}

absl::Status CheckElements(const std::string& name, absl::string_view operand,
                           std::initializer_list<int64_t> dimensions) {
  int64_t elements = 1;
  for (const int64_t dimension : dimensions) {
    if (dimension > kMaxTensorElements / elements) {
      return Bad(name,
                 absl::StrCat("has more than ", kMaxTensorElements, " elements in ", operand, "."));
    }
    elements *= dimension;
  }
  return absl::OkStatus();
}

absl::Status CheckMatmul(const std::string& name, const LibraryCall& call) {
  for (const absl::Status& status :
       {CheckDimensions(name, {{"m", call.m}, {"n", call.n}, {"k", call.k}, {"batch", call.batch}}),
        CheckUnused(name, {{"channels", call.channels},
                           {"height", call.height},
                           {"width", call.width},
                           {"filters", call.filters},
                           {"filter_height", call.filter_height},
                           {"filter_width", call.filter_width},
                           {"padding", call.padding}})}) {
    if (!status.ok()) return status;
  }
  for (const absl::Status& status : {CheckElements(name, "a", {call.batch, call.m, call.k}),
                                     CheckElements(name, "b", {call.batch, call.k, call.n}),
                                     CheckElements(name, "d", {call.batch, call.m, call.n})}) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// The window, dilated, must lie in the padded image at least once.
absl::Status CheckWindow(const std::string& name, const LibraryCall& call) {
  if (absl::Status status = CheckDimensions(name, {{"filter_height", call.filter_height},
                                                   {"filter_width", call.filter_width},
                                                   {"stride", call.stride},
                                                   {"dilation", call.dilation}});
      !status.ok()) {
    return status;
  }
  if (call.padding < 0 || call.padding > kMaxTensorDimension) {
    return Bad(name, absl::StrCat("has the padding ", call.padding,
                                  ", and it must lie between 0 and ", kMaxTensorDimension, "."));
  }
  const auto check = [&](absl::string_view side, int64_t image, int64_t window) {
    const int64_t padded = image + 2 * call.padding;
    const int64_t dilated = call.dilation * (window - 1) + 1;
    if (dilated <= padded) return absl::OkStatus();
    return Bad(name, absl::StrCat("has a window of ", side, " ", dilated, " with its dilation, ",
                                  "and the padded image has ", padded, "."));
  };
  if (absl::Status status = check("height", call.height, call.filter_height); !status.ok()) {
    return status;
  }
  return check("width", call.width, call.filter_width);
}

absl::Status CheckConvolution(const std::string& name, const LibraryCall& call) {
  if (absl::Status status = CheckWindow(name, call); !status.ok()) return status;
  if (absl::Status status =
          CheckDimensions(name, {{"filters", call.filters}, {"groups", call.groups}});
      !status.ok()) {
    return status;
  }
  if (call.channels % call.groups != 0 || call.filters % call.groups != 0) {
    return Bad(name,
               absl::StrCat("has ", call.channels, " channels and ", call.filters, " filters, and ",
                            call.groups, " groups must divide both without a rest."));
  }
  return CheckElements(name, "the filters",
                       {call.filters, call.channels, call.filter_height, call.filter_width});
}

absl::Status CheckPooling(const std::string& name, const LibraryCall& call) {
  if (absl::Status status = CheckUnused(name, {{"filters", call.filters}}); !status.ok()) {
    return status;
  }
  if (call.dilation != 1 || call.groups != 1) {
    return Bad(name, absl::StrCat("has the dilation ", call.dilation, " and ", call.groups,
                                  " groups, and pooling has 1 of each."));
  }
  return CheckWindow(name, call);
}

absl::Status CheckImages(const std::string& name, const LibraryCall& call) {
  for (const absl::Status& status :
       {CheckDimensions(name, {{"batch", call.batch},
                               {"channels", call.channels},
                               {"height", call.height},
                               {"width", call.width}}),
        CheckUnused(name, {{"m", call.m}, {"n", call.n}, {"k", call.k}})}) {
    if (!status.ok()) return status;
  }
  if (call.transpose_a || call.transpose_b) {
    return Bad(name, "transposes an operand, and only a matrix product does.");
  }
  return CheckElements(name, "its input", {call.batch, call.channels, call.height, call.width});
}

absl::Status CheckMode(const std::string& name, const LibraryCall& call) {
  const LibraryMode mode = call.mode;
  if (mode == LibraryMode::kDefault) return absl::OkStatus();
  const bool pools = mode == LibraryMode::kMaxPooling || mode == LibraryMode::kAveragePooling;
  const bool activates =
      mode == LibraryMode::kRelu || mode == LibraryMode::kTanh || mode == LibraryMode::kSigmoid;
  if ((pools && call.operation == LibraryOperation::kPooling) ||
      (activates && call.operation == LibraryOperation::kActivation)) {
    return absl::OkStatus();
  }
  return Bad(name, absl::StrCat("has the mode ", static_cast<int>(mode),
                                ", and its operation has no such mode."));
}

}  // namespace

absl::Status CheckLibraryCall(const std::string& name, const LibraryCall& call) {
  if (call.type > DataType::kBfloat16) {
    return Bad(name, absl::StrCat("has the data type ", static_cast<int>(call.type),
                                  ", and it must lie between 0 and 2."));
  }
  if (absl::Status status = CheckMode(name, call); !status.ok()) return status;
  if (call.operation == LibraryOperation::kMatmul) return CheckMatmul(name, call);
  if (absl::Status status = CheckImages(name, call); !status.ok()) return status;
  switch (call.operation) {
    case LibraryOperation::kConvolution:
      return CheckConvolution(name, call);
    case LibraryOperation::kPooling:
      return CheckPooling(name, call);
    case LibraryOperation::kActivation:
    case LibraryOperation::kSoftmax:
      return CheckUnused(name, {{"filters", call.filters},
                                {"filter_height", call.filter_height},
                                {"filter_width", call.filter_width},
                                {"padding", call.padding}});
    default:
      return Bad(name, absl::StrCat("has the operation ", static_cast<int>(call.operation),
                                    ", and it must lie between 1 and 5."));
  }
}

}  // namespace gpushare::core

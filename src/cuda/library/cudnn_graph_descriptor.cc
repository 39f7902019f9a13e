// Creates and fills descriptors. See cudnn_graph_descriptor.h.

#if __has_include(<cudnn.h>)

#include "src/cuda/library/cudnn_graph_descriptor.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gpushare::cuda {
namespace {

absl::Status WithPlace(const absl::Status& status, cudnnBackendDescriptorType_t type,
                       const std::string& what) {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), " The descriptor is of type ",
                                   static_cast<int>(type), " of the graph interface", what, "."));
}

}  // namespace

absl::Status CreateGraphDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type,
                                   GraphDescriptor& out) {
  cudnnBackendDescriptor_t made = nullptr;
  const absl::Status status = GPUSHARE_CUDNN(api, cudnnBackendCreateDescriptor(type, &made));
  if (!status.ok()) return WithPlace(status, type, "");
  out = GraphDescriptor(made, {api.cudnnBackendDestroyDescriptor});
  return absl::OkStatus();
}

absl::Status MakeGraphDescriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type,
                                 absl::Span<const GraphAttribute> attributes,
                                 GraphDescriptor& out) {
  GraphDescriptor made;
  if (absl::Status status = CreateGraphDescriptor(api, type, made); !status.ok()) return status;
  for (const GraphAttribute& one : attributes) {
    const absl::Status status = GPUSHARE_CUDNN(
        api, cudnnBackendSetAttribute(made.get(), one.name, one.type, one.count, one.values));
    if (!status.ok()) {
      return WithPlace(status, type, absl::StrCat(", the attribute ", static_cast<int>(one.name)));
    }
  }
  if (absl::Status status = GPUSHARE_CUDNN(api, cudnnBackendFinalize(made.get())); !status.ok()) {
    return WithPlace(status, type, "");
  }
  out = std::move(made);
  return absl::OkStatus();
}

}  // namespace gpushare::cuda

#endif

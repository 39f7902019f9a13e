// Descriptors of both libraries: an owner that destroys one, and the sizes of elements.
//
// Threads: one at a time.

#ifndef GPUSHARE_SRC_CUDA_LIBRARY_LIBRARY_DESCRIPTOR_H_
#define GPUSHARE_SRC_CUDA_LIBRARY_LIBRARY_DESCRIPTOR_H_

#include <cstddef>

#include "src/core/seams/library_call.h"

namespace gpushare::cuda {

// Owns a descriptor and destroys it with the library's function.
template <class Descriptor, class LibraryStatus>
class OwnedDescriptor {
 public:
  OwnedDescriptor() = default;
  ~OwnedDescriptor() {
    if (value_ != nullptr) destroy_(value_);
  }
  OwnedDescriptor(const OwnedDescriptor&) = delete;
  OwnedDescriptor& operator=(const OwnedDescriptor&) = delete;
  Descriptor* Put(LibraryStatus (*destroy)(Descriptor)) {
    destroy_ = destroy;
    return &value_;
  }
  Descriptor get() const { return value_; }

 private:
  Descriptor value_ = nullptr;
  LibraryStatus (*destroy_)(Descriptor) = nullptr;
};

inline size_t BytesOf(core::DataType type) { return type == core::DataType::kFloat32 ? 4 : 2; }

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LIBRARY_LIBRARY_DESCRIPTOR_H_

// Opens a fake CUDA library and finds the control of its answers.

#ifndef GPUSHARE_TESTS_CUDA_LIBRARY_FAKE_LIBRARY_H_
#define GPUSHARE_TESTS_CUDA_LIBRARY_FAKE_LIBRARY_H_

#include <dlfcn.h>

#include <memory>

#include "gtest/gtest.h"
#include "src/cuda/driver/library_opener.h"

namespace gpushare::cuda {

// The control `name` of the opened library, reset to its defaults. Null, and the test fails, if the
// library cannot be opened or is not the fake one.
template <class Control>
Control* OpenFakeLibrary(const char* library, const char* name) {
  const absl::StatusOr<void*> opened = OpenLibrary(library);
  EXPECT_TRUE(opened.ok()) << opened.status();
  if (!opened.ok()) return nullptr;
  auto* const control = static_cast<Control*>(dlsym(*opened, name));
  EXPECT_NE(control, nullptr) << "the opened library is not the fake one";
  if (control == nullptr) return nullptr;
  std::destroy_at(control);
  return std::construct_at(control);
}

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_LIBRARY_FAKE_LIBRARY_H_

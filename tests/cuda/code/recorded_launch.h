// A launch that tests/python/gpu/record_launches.py wrote: the text of a kernel, its grid, its
// arguments and the memory they point to.
//
//   auto launch = RecordedLaunch::Read("case.json");   // or an error that names the file
//   launch->Restore();                                 // the memory as it was before the launch
//   ... run launch->kernel on launch->grid with launch->arguments ...
//   launch->KeepAsExpected();  launch->Differing();    // bytes that another run gave otherwise

#ifndef GPUSHARE_TESTS_CUDA_CODE_RECORDED_LAUNCH_H_
#define GPUSHARE_TESTS_CUDA_CODE_RECORDED_LAUNCH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "src/core/seams/kernel.h"

namespace gpushare::cuda {

class RecordedLaunch {
 public:
  static absl::StatusOr<std::unique_ptr<RecordedLaunch>> Read(const std::string& path);
  ~RecordedLaunch();
  RecordedLaunch(const RecordedLaunch&) = delete;
  RecordedLaunch& operator=(const RecordedLaunch&) = delete;

  core::KernelDesc kernel;
  std::string source;  // where the kernel comes from
  std::array<int32_t, 3> grid = {1, 1, 1};
  int64_t block_tasks = 1;
  std::vector<uint8_t> arguments;  // packed as in C

  bool Restore() const;
  bool KeepAsExpected() const;
  uint64_t Differing() const;  // kNotCompared: an error

 private:
  // Of each buffer: what the kernel works on, what it was before, and what the original left.
  struct Buffer {
    size_t bytes = 0;
    void* work = nullptr;
    void* before = nullptr;
    void* expected = nullptr;
  };
  RecordedLaunch() = default;

  std::vector<Buffer> buffers_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_CODE_RECORDED_LAUNCH_H_

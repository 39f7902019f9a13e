// Fixtures for tests below the device seam, on the first GPU. They skip without a GPU.
//
// A derived SetUp calls its base's first and returns unless ready(). A derived TearDown ends what
// it made and then calls its base's.

#ifndef GPUSHARE_TESTS_CUDA_DRIVER_CONTEXT_FIXTURE_H_
#define GPUSHARE_TESTS_CUDA_DRIVER_CONTEXT_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "src/cuda/driver/context.h"
#include "src/cuda/driver/driver.h"
#include "src/cuda/driver/places.h"

namespace gpushare::cuda {

// The primary context, current on the test's thread.
class ContextTest : public testing::Test {
 protected:
  void SetUp() override {
    const absl::Status gpu = CheckDevice(SystemDriver(), 0);
    if (!gpu.ok()) GTEST_SKIP() << gpu.message();
    context_ = Context::Open(0).value();
    current_.emplace(*context_);
  }

  static bool ready() { return !IsSkipped() && !HasFatalFailure(); }
  const DriverApi& driver() const { return context_->api(); }

  std::unique_ptr<Context> context_;
  std::optional<ScopedContext> current_;
};

// The device with a place of half of its SM groups, streams, and device memory.
class PlacesTest : public ContextTest {
 protected:
  void SetUp() override {
    ContextTest::SetUp();
    if (!ready()) return;
    places_ = std::make_unique<Places>(*context_);
    sms_ = context_->Attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    const absl::Status split = places_->Split(sms_);
    if (absl::IsUnimplemented(split)) GTEST_SKIP() << split.message();
    ASSERT_TRUE(split.ok()) << split;
    core::PlaceSpec spec;
    spec.groups = std::max(1, places_->groups() / 2);
    const absl::Status half = places_->Create(1, spec);
    ASSERT_TRUE(half.ok()) << half;
    half_ = 1;
  }

  void TearDown() override {
    for (const CUdeviceptr address : memory_) driver().cuMemFree(address);
    for (CUstream stream : streams_) driver().cuStreamDestroy(stream);
  }

  // Null on an error, which fails the test.
  CUstream MakeStream(core::PlaceIndex place) {
    const auto stream = places_->MakeStream(place, 0);
    EXPECT_TRUE(stream.ok()) << stream.status();
    if (!stream.ok()) return nullptr;
    streams_.push_back(*stream);
    return *stream;
  }

  CUdeviceptr Allocate(size_t bytes) {
    CUdeviceptr address = 0;
    EXPECT_EQ(driver().cuMemAlloc(&address, bytes), CUDA_SUCCESS);
    memory_.push_back(address);
    return address;
  }

  // Copies on the first stream, and wait for it.
  void CopyToDevice(CUdeviceptr address, const std::vector<unsigned char>& bytes) {
    EXPECT_EQ(driver().cuMemcpyHtoDAsync(address, bytes.data(), bytes.size(), streams_[0]),
              CUDA_SUCCESS);
    EXPECT_EQ(driver().cuStreamSynchronize(streams_[0]), CUDA_SUCCESS);
  }
  std::vector<unsigned char> CopyFromDevice(const void* address, size_t size) {
    std::vector<unsigned char> bytes(size);
    EXPECT_EQ(driver().cuMemcpyDtoHAsync(bytes.data(), reinterpret_cast<CUdeviceptr>(address), size,
                                         streams_[0]),
              CUDA_SUCCESS);
    EXPECT_EQ(driver().cuStreamSynchronize(streams_[0]), CUDA_SUCCESS);
    return bytes;
  }

  std::unique_ptr<Places> places_;
  int sms_ = 0;                                 // of the device
  core::PlaceIndex half_ = core::kWholeDevice;  // the place of half of the SM groups
  std::vector<CUstream> streams_;

 private:
  std::vector<CUdeviceptr> memory_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_DRIVER_CONTEXT_FIXTURE_H_

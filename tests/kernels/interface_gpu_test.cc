// Problems packed by <gpushare/kernels.h>, on a GPU: the original grid against a float64 reference,
// then workers that are evicted at random moments, which leave the same bits. Sizes divide little.

#include <gpushare/kernels.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/tensor/portable_inputs.h"
#include "benchmarks/kernels/tensor/portable_workload.h"
#include "tests/kernels/fixture.h"

namespace gpushare::kernels {
namespace {

constexpr double kWindowUs = 40;  // an eviction comes within so much of a launch
constexpr int kEvictions = 5;

#define ASSERT_KERNELS_OK(call) \
  ASSERT_EQ((call), GPUSHARE_KERNELS_OK) << gpushare_kernels_last_error_message()

class InterfaceTest : public KernelTest {
 protected:
  // A buffer of seeded floats.
  float* Input(size_t count, uint32_t seed, float low, float high) {
    buffers_.push_back(std::make_unique<DeviceBuffer>());
    Status status = buffers_.back()->Allocate(count * sizeof(float));
    if (status.ok()) status = buffers_.back()->FillUniform(seed, low, high);
    EXPECT_TRUE(status.ok()) << status.message;
    return buffers_.back()->as<float>();
  }
  void* Bf16Input(size_t count, uint32_t seed) {
    buffers_.push_back(std::make_unique<DeviceBuffer>());
    Status status = buffers_.back()->Allocate(count * sizeof(uint16_t));
    if (status.ok()) status = FillPortableInputs(buffers_.back().get(), seed);
    EXPECT_TRUE(status.ok()) << status.message;
    return buffers_.back()->data();
  }
  void* Output(size_t bytes) {
    output_ = std::make_unique<DeviceBuffer>();
    const Status status = output_->Allocate(bytes);
    EXPECT_TRUE(status.ok()) << status.message;
    return output_->data();
  }

  // Runs the packed task in both forms. Element i of the output is `expected(i)` within
  // `tolerance`.
  template <class Element>
  void Run(const gpushare_kernels_task& packed, double tolerance,
           const std::function<double(uint64_t)>& expected) {
    FormTask task;
    ASSERT_KERNELS_OK(gpushare_kernels_variants(packed.kernel, &task.variants));
    ASSERT_EQ(task.variants.params_bytes, packed.arguments_size_bytes);
    task.params = packed.arguments;
    task.grid = {static_cast<uint32_t>(packed.grid_x), static_cast<uint32_t>(packed.grid_y),
                 static_cast<uint32_t>(packed.grid_z)};
    GPUSHARE_ASSERT_OK(output_->FillPattern());
    GPUSHARE_ASSERT_OK(launcher_.LaunchOriginal(task));
    GPUSHARE_ASSERT_OK(launcher_.Wait());
    uint64_t original = 0;
    GPUSHARE_ASSERT_OK(output_->Checksum(&original));
    std::vector<Element> values(output_->bytes() / sizeof(Element));
    GPUSHARE_ASSERT_OK(output_->Read(0, output_->bytes(), values.data()));
    for (uint64_t i = 0; i < values.size(); ++i) {
      ASSERT_LE(std::abs(ValueOf(values[i]) - expected(i)), tolerance)
          << "element " << i << " is " << ValueOf(values[i]) << ", expected " << expected(i);
    }
    GPUSHARE_ASSERT_OK(output_->FillPattern());
    RunWithEvictions(task, launcher_.FullWorkers(task), kWindowUs, kEvictions, 1);
    uint64_t workers = 0;
    GPUSHARE_ASSERT_OK(output_->Checksum(&workers));
    EXPECT_EQ(workers, original) << "workers that were evicted have other results";
  }

  void Gemm(const char* name, uint32_t m, uint32_t n, uint32_t k) {
    SCOPED_TRACE(name);
    constexpr uint32_t kSeedA = 31;
    constexpr uint32_t kSeedB = 32;
    uint32_t index = 0;
    ASSERT_KERNELS_OK(gpushare_kernels_find(name, &index));
    gpushare_gemm_params params = GPUSHARE_GEMM_PARAMS_INIT;
    params.a = Bf16Input(size_t{m} * k, kSeedA);
    params.b = Bf16Input(size_t{n} * k, kSeedB);
    params.c = Output(size_t{m} * n * sizeof(uint16_t));
    params.m = m;
    params.n = n;
    params.k = k;
    ASSERT_KERNELS_OK(gpushare_kernels_pack_gemm(index, &params, &task_));
    ASSERT_EQ(task_.kernel, index);
    Run<uint16_t>(task_, PortableTolerance(k), [&](uint64_t i) {
      const auto row = static_cast<uint32_t>(i / n * k);
      const auto column = static_cast<uint32_t>(i % n * k);
      double sum = 0;
      for (uint32_t j = 0; j < k; ++j) {
        sum += static_cast<double>(PortableInput(kSeedA, row + j)) *
               static_cast<double>(PortableInput(kSeedB, column + j));
      }
      return sum;
    });
  }

  static double ValueOf(float value) { return static_cast<double>(value); }
  static double ValueOf(uint16_t bits) { return static_cast<double>(FromBf16(bits)); }

  // The value that Input put at `index`.
  static double At(uint32_t seed, uint64_t index, float low, float high) {
    return static_cast<double>(Uniform(seed, static_cast<uint32_t>(index), low, high));
  }

  std::vector<std::unique_ptr<DeviceBuffer>> buffers_;
  std::unique_ptr<DeviceBuffer> output_;
  gpushare_kernels_task task_ = GPUSHARE_KERNELS_TASK_INIT;
};

TEST_F(InterfaceTest, GemmsOfCutTiles) {
  gpushare_kernel_variants variants = {};
  uint32_t wgmma = 0;
  ASSERT_KERNELS_OK(gpushare_kernels_find("gemm_wgmma", &wgmma));
  if (gpushare_kernels_variants(wgmma, &variants) == GPUSHARE_KERNELS_OK) {
    Gemm("gemm_wgmma", 1000, 1032, 136);
    Gemm("gemm_roomy", 1000, 1032, 136);
  }
  Gemm("gemm_mma", 1000, 1032, 136);
  Gemm("gemm_skinny", 16, 8192, 544);
  Gemm("gemm_skinny_compact", 8, 8192, 544);
}

TEST_F(InterfaceTest, SoftmaxOfRowsThatFillNoWarp) {
  constexpr uint32_t kRows = 4111;  // a prime number: a row a block task
  constexpr uint32_t kLength = 100;
  gpushare_softmax_params params = GPUSHARE_SOFTMAX_PARAMS_INIT;
  params.input = Input(size_t{kRows} * kLength, 1, -4, 4);
  params.output = static_cast<float*>(Output(size_t{kRows} * kLength * sizeof(float)));
  params.row_count = kRows;
  params.row_length = kLength;
  ASSERT_KERNELS_OK(gpushare_kernels_pack_softmax(&params, &task_));
  double sum = 0;
  Run<float>(task_, 1e-6, [&sum](uint64_t i) {
    if (i % kLength == 0) {
      sum = 0;
      for (uint32_t j = 0; j < kLength; ++j) sum += std::exp(At(1, i + j, -4, 4));
    }
    return std::exp(At(1, i, -4, 4)) / sum;
  });
}

TEST_F(InterfaceTest, LayerNorm) {
  constexpr uint32_t kRows = 4 * 1111;
  constexpr uint32_t kLength = 772;
  gpushare_layer_norm_params params = GPUSHARE_LAYER_NORM_PARAMS_INIT;
  params.epsilon = 1e-5F;
  params.input = Input(size_t{kRows} * kLength, 1, -1, 1);
  params.gamma = Input(kLength, 2, 0.5F, 1.5F);
  params.beta = Input(kLength, 3, -1, 1);
  params.output = static_cast<float*>(Output(size_t{kRows} * kLength * sizeof(float)));
  params.row_count = kRows;
  params.row_length = kLength;
  ASSERT_KERNELS_OK(gpushare_kernels_pack_layer_norm(&params, &task_));
  double mean = 0;
  double scale = 0;
  Run<float>(task_, 1e-5, [&](uint64_t i) {
    if (i % kLength == 0) {
      double squares = 0;
      mean = 0;
      for (uint32_t j = 0; j < kLength; ++j) mean += At(1, i + j, -1, 1) / kLength;
      for (uint32_t j = 0; j < kLength; ++j) {
        const double centred = At(1, i + j, -1, 1) - mean;
        squares += centred * centred / kLength;
      }
      scale = 1 / std::sqrt(squares + 1e-5);
    }
    return At(2, i % kLength, 0.5F, 1.5F) * (At(1, i, -1, 1) - mean) * scale +
           At(3, i % kLength, -1, 1);
  });
}

TEST_F(InterfaceTest, AffineKernelsOfSmallPlanes) {
  constexpr uint32_t kImages = 1024;
  constexpr uint32_t kChannels = 12;
  constexpr uint32_t kPlane = 36;
  constexpr size_t kCount = size_t{kImages} * kChannels * kPlane;
  gpushare_batch_norm_params norm = GPUSHARE_BATCH_NORM_PARAMS_INIT;
  norm.epsilon = 1e-5F;
  norm.input = Input(kCount, 1, -1, 1);
  norm.gamma = Input(kChannels, 2, 0.5F, 1.5F);
  norm.beta = Input(kChannels, 3, -1, 1);
  norm.mean = Input(kChannels, 4, -1, 1);
  norm.variance = Input(kChannels, 5, 0.25F, 4);
  norm.output = static_cast<float*>(Output(kCount * sizeof(float)));
  norm.image_count = kImages;
  norm.channel_count = kChannels;
  norm.plane_size = kPlane;
  ASSERT_KERNELS_OK(gpushare_kernels_pack_batch_norm(&norm, &task_));
  const auto channel = [](uint64_t i) { return i / kPlane % kChannels; };
  Run<float>(task_, 4e-6, [&](uint64_t i) {
    const uint64_t c = channel(i);
    return At(2, c, 0.5F, 1.5F) * (At(1, i, -1, 1) - At(4, c, -1, 1)) /
               std::sqrt(At(5, c, 0.25F, 4) + 1e-5) +
           At(3, c, -1, 1);
  });
  gpushare_scale_params scale = GPUSHARE_SCALE_PARAMS_INIT;
  scale.input = norm.input;
  scale.gamma = norm.gamma;
  scale.beta = norm.beta;
  scale.output = norm.output;
  scale.image_count = kImages;
  scale.channel_count = kChannels;
  scale.plane_size = kPlane;
  ASSERT_KERNELS_OK(gpushare_kernels_pack_scale(&scale, &task_));
  Run<float>(task_, 1e-6, [&](uint64_t i) {
    return At(2, channel(i), 0.5F, 1.5F) * At(1, i, -1, 1) + At(3, channel(i), -1, 1);
  });
}

TEST_F(InterfaceTest, Relu) {
  constexpr size_t kCount = size_t{4096} * 1009;
  gpushare_relu_params params = GPUSHARE_RELU_PARAMS_INIT;
  params.input = Input(kCount, 1, -1, 1);
  params.output = static_cast<float*>(Output(kCount * sizeof(float)));
  params.count = kCount;
  ASSERT_KERNELS_OK(gpushare_kernels_pack_relu(&params, &task_));
  Run<float>(task_, 0, [](uint64_t i) { return std::fmax(At(1, i, -1, 1), 0.0); });
}

TEST_F(InterfaceTest, PoolingOfPlanesThatAreNoPowerOfTwo) {
  constexpr int64_t kPlanes = 301;
  constexpr int64_t kHeight = 42;
  constexpr int64_t kWidth = 60;
  gpushare_pooling_params params = GPUSHARE_POOLING_PARAMS_INIT;
  params.input = Input(kPlanes * kHeight * kWidth, 1, -1, 1);
  params.output = static_cast<float*>(Output(kPlanes * kHeight * kWidth / 4 * sizeof(float)));
  params.plane_count = kPlanes;
  params.height = kHeight;
  params.width = kWidth;
  for (const gpushare_pooling_mode mode : {GPUSHARE_POOLING_MAXIMUM, GPUSHARE_POOLING_AVERAGE}) {
    params.mode = mode;
    ASSERT_KERNELS_OK(gpushare_kernels_pack_pooling(&params, &task_));
    Run<float>(task_, mode == GPUSHARE_POOLING_MAXIMUM ? 0 : 7e-7, [&](uint64_t i) {
      const auto column = static_cast<int64_t>(i % (kWidth / 2));
      const auto row = static_cast<int64_t>(i / (kWidth / 2) % (kHeight / 2));
      const auto plane = static_cast<int64_t>(i / (kWidth / 2) / (kHeight / 2));
      double sum = 0;
      double largest = -1;
      int inside = 0;
      for (int64_t y = std::max<int64_t>(0, 2 * row - 1); y <= 2 * row + 1; ++y) {
        for (int64_t x = std::max<int64_t>(0, 2 * column - 1); x <= 2 * column + 1; ++x) {
          const double value =
              At(1, static_cast<uint64_t>((plane * kHeight + y) * kWidth + x), -1, 1);
          sum += value;
          largest = std::max(largest, value);
          ++inside;
        }
      }
      return mode == GPUSHARE_POOLING_MAXIMUM ? largest : sum / inside;
    });
  }
}

TEST_F(InterfaceTest, Im2colOfImagesThatFillNoTile) {
  constexpr int64_t kImages = 9;
  constexpr int64_t kChannels = 32;
  constexpr int64_t kHeight = 33;
  constexpr int64_t kWidth = 45;
  gpushare_im2col_params params = GPUSHARE_IM2COL_PARAMS_INIT;
  params.image_count = kImages;
  params.channel_count = kChannels;
  params.height = kHeight;
  params.width = kWidth;
  constexpr int64_t kCount = kImages * kChannels * kHeight * kWidth;
  const auto source = [](uint64_t i) -> int64_t {  // -1: a zero around the image
    const auto k = static_cast<int64_t>(i % (kChannels * 9));
    const auto row = static_cast<int64_t>(i / (kChannels * 9));
    const int64_t x = row % kWidth + k % 3 - 1;
    const int64_t y = row / kWidth % kHeight + k % 9 / 3 - 1;
    if (x < 0 || y < 0 || x >= kWidth || y >= kHeight) return -1;
    const int64_t plane = row / kWidth / kHeight * kChannels + k / 9;
    return (plane * kHeight + y) * kWidth + x;
  };
  params.element_size_bytes = sizeof(float);
  params.input = Input(kCount, 1, -1, 1);
  params.output = Output(kCount * 9 * sizeof(float));
  ASSERT_KERNELS_OK(gpushare_kernels_pack_im2col(&params, &task_));
  Run<float>(task_, 0, [&](uint64_t i) {
    return source(i) < 0 ? 0.0 : At(1, static_cast<uint64_t>(source(i)), -1, 1);
  });
  params.element_size_bytes = sizeof(uint16_t);
  params.input = Bf16Input(kCount, 2);
  params.output = Output(kCount * 9 * sizeof(uint16_t));
  ASSERT_KERNELS_OK(gpushare_kernels_pack_im2col(&params, &task_));
  Run<uint16_t>(task_, 0, [&](uint64_t i) {
    const int64_t at = source(i);
    return at < 0 ? 0.0 : static_cast<double>(PortableInput(2, static_cast<uint32_t>(at)));
  });
}

TEST_F(InterfaceTest, StepsOfOptimisers) {
  constexpr size_t kCount = size_t{1024} * 1001;
  gpushare_sgd_params sgd = GPUSHARE_SGD_PARAMS_INIT;
  sgd.rate = 0.125F;
  sgd.momentum = 0.875F;
  sgd.decay = 0.0625F;
  sgd.weights = Input(kCount, 1, -1, 1);
  sgd.gradients = Input(kCount, 2, -1, 1);
  sgd.velocities = Input(kCount, 3, -1, 1);
  sgd.new_weights = static_cast<float*>(Output(2 * kCount * sizeof(float)));
  sgd.new_velocities = sgd.new_weights + kCount;
  sgd.count = kCount;
  ASSERT_KERNELS_OK(gpushare_kernels_pack_sgd(&sgd, &task_));
  Run<float>(task_, 5e-7, [](uint64_t i) {
    const uint64_t at = i % kCount;
    const double velocity =
        0.875 * At(3, at, -1, 1) + (At(2, at, -1, 1) + 0.0625 * At(1, at, -1, 1));
    return i < kCount ? At(1, at, -1, 1) - 0.125 * velocity : velocity;
  });

  constexpr float kSecondMin = 0.0125F;
  gpushare_adam_params adam = GPUSHARE_ADAM_PARAMS_INIT;
  adam.rate = 1e-3F;
  adam.beta1 = 0.9F;
  adam.beta2 = 0.999F;
  adam.epsilon = 1e-8F;
  adam.step = 100;
  adam.weights = sgd.weights;
  adam.gradients = sgd.gradients;
  adam.first = sgd.velocities;
  adam.second = Input(kCount, 4, kSecondMin, 1);
  adam.new_weights = static_cast<float*>(Output(3 * kCount * sizeof(float)));
  adam.new_first = adam.new_weights + kCount;
  adam.new_second = adam.new_first + kCount;
  adam.count = kCount;
  ASSERT_KERNELS_OK(gpushare_kernels_pack_adam(&adam, &task_));
  const double beta1 = adam.beta1;
  const double beta2 = adam.beta2;
  const double first_correction = 1 - std::pow(beta1, 100);
  const double second_correction = 1 - std::pow(beta2, 100);
  Run<float>(task_, 3e-7, [&](uint64_t i) {
    const uint64_t at = i % kCount;
    const double gradient = At(2, at, -1, 1);
    const double first = beta1 * At(3, at, -1, 1) + (1 - beta1) * gradient;
    const double second = beta2 * At(4, at, kSecondMin, 1) + (1 - beta2) * gradient * gradient;
    if (i >= 2 * kCount) return second;
    if (i >= kCount) return first;
    const double step = static_cast<double>(adam.rate) * (first / first_correction) /
                        (std::sqrt(second / second_correction) + 1e-8);
    return At(1, at, -1, 1) - step;
  });
}

}  // namespace
}  // namespace gpushare::kernels

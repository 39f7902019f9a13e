// <gpushare/kernels.h> without a GPU: the list, bad input, and what is packed. Each problem is cut
// so that its block tasks cover it exactly; interface_gpu_test.cc runs them.

#include <gmock/gmock.h>
#include <gpushare/kernels.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "kernels/dnn/adam.h"
#include "kernels/dnn/affine.h"
#include "kernels/dnn/batch_norm.h"
#include "kernels/dnn/im2col.h"
#include "kernels/dnn/layer_norm.h"
#include "kernels/dnn/pooling.h"
#include "kernels/dnn/relu.h"
#include "kernels/dnn/scale.h"
#include "kernels/dnn/sgd.h"
#include "kernels/dnn/softmax.h"
#include "kernels/tensor/gemm_mma.h"

namespace gpushare::kernels {
namespace {

using testing::HasSubstr;

// Addresses that nobody reads: aligned to 4 KB, and far apart.
template <class T = float>
T* Address(uintptr_t index) {
  return reinterpret_cast<T*>((index + 1) << 30U);
}

std::string Message() { return gpushare_kernels_last_error_message(); }

// The call fails with this code and a sentence that contains `text`.
void ExpectFails(gpushare_kernels_status status, gpushare_kernels_status code,
                 const std::string& text) {
  EXPECT_EQ(status, code) << Message();
  EXPECT_THAT(Message(), HasSubstr(text));
  EXPECT_EQ(Message().back(), '.') << Message();
}
void ExpectInvalid(gpushare_kernels_status status, const std::string& text) {
  ExpectFails(status, GPUSHARE_KERNELS_INVALID_ARGUMENT, text);
}

uint32_t IndexOf(const char* name) {
  uint32_t index = UINT32_MAX;
  EXPECT_EQ(gpushare_kernels_find(name, &index), GPUSHARE_KERNELS_OK) << Message();
  return index;
}

template <class Packed>
Packed Unpack(const gpushare_kernels_task& task, const char* kernel) {
  Packed packed;
  EXPECT_EQ(task.kernel, IndexOf(kernel));
  EXPECT_EQ(task.arguments_size_bytes, sizeof(packed));
  EXPECT_EQ(task.block_tasks, int64_t{1} * task.grid_x * task.grid_y * task.grid_z);
  std::memcpy(&packed, task.arguments, sizeof(packed));
  return packed;
}

gpushare_softmax_params Softmax(int64_t rows = 1024, int64_t length = 512) {
  gpushare_softmax_params params = GPUSHARE_SOFTMAX_PARAMS_INIT;
  params.input = Address(0);
  params.output = Address(1);
  params.row_count = rows;
  params.row_length = length;
  return params;
}

gpushare_gemm_params Gemm(int64_t m, int64_t n, int64_t k) {
  gpushare_gemm_params params = GPUSHARE_GEMM_PARAMS_INIT;
  params.a = Address<void>(0);
  params.b = Address<void>(1);
  params.c = Address<void>(2);
  params.m = m;
  params.n = n;
  params.k = k;
  return params;
}

TEST(KernelListTest, NamesAreUniqueAndFound) {
  EXPECT_EQ(gpushare_kernels_version(), static_cast<uint32_t>(GPUSHARE_KERNELS_VERSION));
  const uint32_t count = gpushare_kernels_count();
  EXPECT_GE(count, 15U);
  std::set<std::string> names;
  for (uint32_t i = 0; i < count; ++i) {
    gpushare_kernels_info info = GPUSHARE_KERNELS_INFO_INIT;
    ASSERT_EQ(gpushare_kernels_info_get(i, &info), GPUSHARE_KERNELS_OK) << Message();
    EXPECT_EQ(info.struct_size, sizeof(info));
    EXPECT_TRUE(names.insert(info.name).second) << info.name << " is there twice";
    EXPECT_EQ(IndexOf(info.name), i);
    EXPECT_THAT(info.params, testing::MatchesRegex("gpushare_[a-z0-9_]+_params"));
    EXPECT_EQ(std::string(info.summary).back(), '.') << info.summary;
    EXPECT_GE(info.compute_capability_min, 80);
  }
  for (const char* const name : {"gemm_wgmma", "gemm_mma", "softmax", "layer_norm", "adam"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(KernelListTest, FusedPairsNameKernelsOfTheList) {
  std::set<std::string> names;
  bool two_tensor_parts = false;
  for (uint32_t i = 0; i < gpushare_kernels_fused_count(); ++i) {
    gpushare_kernels_fused_info info = GPUSHARE_KERNELS_FUSED_INFO_INIT;
    ASSERT_EQ(gpushare_kernels_fused_info_get(i, &info), GPUSHARE_KERNELS_OK) << Message();
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_NE(info.form, GPUSHARE_FUSED_DIRECT) << info.name << " reports no end";
    EXPECT_LT(info.tensor_kernel, gpushare_kernels_count());
    EXPECT_LT(info.cuda_kernel, gpushare_kernels_count());
    EXPECT_NE(info.tensor_kernel, info.cuda_kernel);
    two_tensor_parts |= info.cuda_kernel == IndexOf("gemm_skinny_compact");
  }
  EXPECT_GE(names.size(), 7U);
  EXPECT_TRUE(two_tensor_parts);
}

TEST(KernelListTest, WhatIsNotThereIsRefused) {
  uint32_t index = 0;
  ExpectFails(gpushare_kernels_find("no_such_kernel", &index), GPUSHARE_KERNELS_NOT_FOUND,
              "'no_such_kernel'");
  ExpectInvalid(gpushare_kernels_find(nullptr, &index), "null");
  ExpectInvalid(gpushare_kernels_find("softmax", nullptr), "null");
  const uint32_t count = gpushare_kernels_count();
  gpushare_kernels_info info = GPUSHARE_KERNELS_INFO_INIT;
  ExpectFails(gpushare_kernels_info_get(count, &info), GPUSHARE_KERNELS_OUT_OF_RANGE,
              std::to_string(count));
  ExpectInvalid(gpushare_kernels_info_get(0, nullptr), "null");
  info.struct_size = 8;
  ExpectInvalid(gpushare_kernels_info_get(0, &info), "struct_size");
  gpushare_kernel_variants variants = {};
  ExpectFails(gpushare_kernels_variants(count, &variants), GPUSHARE_KERNELS_OUT_OF_RANGE, "list");
  ExpectInvalid(gpushare_kernels_variants(0, nullptr), "null");
  const uint32_t pairs = gpushare_kernels_fused_count();
  gpushare_kernels_fused_info fused = GPUSHARE_KERNELS_FUSED_INFO_INIT;
  ExpectFails(gpushare_kernels_fused_info_get(pairs, &fused), GPUSHARE_KERNELS_OUT_OF_RANGE,
              "pair " + std::to_string(pairs));
  ExpectInvalid(gpushare_kernels_fused_info_get(0, nullptr), "null");
  ExpectInvalid(gpushare_kernels_fused_variants(0, nullptr), "null");
}

// A caller of a later version has a larger struct.
TEST(KernelStructsTest, OnlyAZeroTailIsAccepted) {
  struct Larger {
    gpushare_softmax_params known;
    uint64_t later;
  };
  Larger larger = {Softmax(), 0};
  larger.known.struct_size = sizeof(larger);
  gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
  EXPECT_EQ(gpushare_kernels_pack_softmax(&larger.known, &task), GPUSHARE_KERNELS_OK) << Message();
  larger.later = 1;
  ExpectFails(gpushare_kernels_pack_softmax(&larger.known, &task), GPUSHARE_KERNELS_UNIMPLEMENTED,
              "gpushare_softmax_params");
  larger.known.struct_size = 0xFFFFFFFF;  // never initialised
  ExpectInvalid(gpushare_kernels_pack_softmax(&larger.known, &task), "struct_size");
  larger.known.struct_size = sizeof(larger.known) - 8;
  ExpectInvalid(gpushare_kernels_pack_softmax(&larger.known, &task), "struct_size");
}

TEST(KernelStructsTest, ARefusedProblemLeavesTheTaskAlone) {
  gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
  task.block_tasks = 77;
  gpushare_softmax_params params = Softmax();
  params.row_length = 6;
  ExpectInvalid(gpushare_kernels_pack_softmax(&params, &task), "'row_length' from 4 to 512");
  EXPECT_EQ(task.block_tasks, 77);
  params = Softmax();
  ExpectInvalid(gpushare_kernels_pack_softmax(&params, nullptr), "gpushare_kernels_task");
  ExpectInvalid(gpushare_kernels_pack_softmax(nullptr, &task), "gpushare_softmax_params");
  task.struct_size = 16;
  ExpectInvalid(gpushare_kernels_pack_softmax(&params, &task), "struct_size");
}

TEST(KernelPackTest, SoftmaxCoversItsRows) {
  for (const int64_t rows : {1, 7, 8, 13, 1000, 4096, 65536, 999983}) {
    gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
    const gpushare_softmax_params params = Softmax(rows, 128);
    ASSERT_EQ(gpushare_kernels_pack_softmax(&params, &task), GPUSHARE_KERNELS_OK) << Message();
    const auto packed = Unpack<SoftmaxParams>(task, "softmax");
    EXPECT_EQ(packed.ring, task.block_tasks);
    EXPECT_EQ(task.block_tasks * packed.rows, rows);
    EXPECT_EQ(packed.length, 128U);
    EXPECT_EQ(packed.in, params.input);
    EXPECT_EQ(packed.out, params.output);
  }
}

TEST(KernelPackTest, SoftmaxRefusesBadPointersAndSizes) {
  gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
  const auto refused = [&task](const gpushare_softmax_params& params, const char* text) {
    ExpectInvalid(gpushare_kernels_pack_softmax(&params, &task), text);
  };
  gpushare_softmax_params params = Softmax();
  params.input = nullptr;
  refused(params, "'input', and it is null");
  params = Softmax();
  params.output += 1;
  refused(params, "'output' at a multiple of 16 bytes, and it is 4 bytes past one");
  params = Softmax();
  params.reserved = 1;
  refused(params, "'reserved'");
  refused(Softmax(0), "'row_count'");
  refused(Softmax(-8), "'row_count'");
  refused(Softmax(8, 516), "516");
  refused(Softmax(int64_t{1} << 32, 512), "elements");
  refused(Softmax(std::numeric_limits<int64_t>::max(), 512), "elements");
}

// Long block tasks keep an LC query waiting, and few ones leave SMs idle.
TEST(KernelPackTest, BlockTasksAreNeitherLongNorFew) {
  gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
  gpushare_softmax_params params = Softmax(1 << 20);
  ASSERT_EQ(gpushare_kernels_pack_softmax(&params, &task), GPUSHARE_KERNELS_OK) << Message();
  const double bytes = static_cast<double>(Unpack<SoftmaxParams>(task, "softmax").rows) * 4096;
  EXPECT_GT(bytes, 100e3);  // 13 us
  EXPECT_LT(bytes, 250e3);  // 30 us
  params = Softmax(8192);
  ASSERT_EQ(gpushare_kernels_pack_softmax(&params, &task), GPUSHARE_KERNELS_OK) << Message();
  EXPECT_GE(task.block_tasks, 528);
}

TEST(KernelPackTest, LayerNormCoversItsRows) {
  gpushare_layer_norm_params params = GPUSHARE_LAYER_NORM_PARAMS_INIT;
  params.epsilon = 1e-5F;
  params.input = Address(0);
  params.gamma = Address(1);
  params.beta = Address(2);
  params.output = Address(3);
  params.row_length = 768;
  gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
  for (const int64_t rows : {4, 12, 4096, 100'000}) {
    params.row_count = rows;
    ASSERT_EQ(gpushare_kernels_pack_layer_norm(&params, &task), GPUSHARE_KERNELS_OK) << Message();
    const auto packed = Unpack<LayerNormParams>(task, "layer_norm");
    EXPECT_EQ(packed.ring, task.block_tasks);
    EXPECT_EQ(packed.rows % kLayerNormRows, 0U);
    EXPECT_EQ(task.block_tasks * packed.rows, rows);
    EXPECT_EQ(packed.epsilon, params.epsilon);
  }
  params.row_count = 6;
  ExpectInvalid(gpushare_kernels_pack_layer_norm(&params, &task), "multiples of 4, and it is 6");
  params.row_count = 8;
  params.epsilon = 0;
  ExpectInvalid(gpushare_kernels_pack_layer_norm(&params, &task), "'epsilon'");
  params.epsilon = 1e-5F;
  params.gamma += 1;
  ExpectInvalid(gpushare_kernels_pack_layer_norm(&params, &task), "'gamma'");
}

// A block task folds one factor a plane, and has room for kAffinePlanesMax.
void ExpectCovered(const AffineTensor& tensor, int64_t block_tasks, int64_t floats) {
  EXPECT_EQ(tensor.ring, block_tasks);
  EXPECT_EQ(tensor.passes % kAffineUnroll, 0U);
  EXPECT_EQ(block_tasks * tensor.passes * kAffineFloatsPerPass, floats);
  for (uint32_t block = 0; block < std::min<int64_t>(block_tasks, 5000); ++block) {
    ASSERT_LE(AffineChunkOf(tensor, block).planes, kAffinePlanesMax) << block;
  }
}

TEST(KernelPackTest, AffineKernelsFoldAsManyPlanesAsFit) {
  gpushare_batch_norm_params norm = GPUSHARE_BATCH_NORM_PARAMS_INIT;
  gpushare_scale_params scale = GPUSHARE_SCALE_PARAMS_INIT;
  scale.input = norm.input = Address(0);
  scale.gamma = norm.gamma = Address(1);
  scale.beta = norm.beta = Address(2);
  norm.mean = Address(3);
  norm.variance = Address(4);
  scale.output = norm.output = Address(5);
  norm.epsilon = 1e-5F;
  gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
  for (const int64_t plane : {20, 36, 196, 784, 3136}) {
    norm.image_count = scale.image_count = 32768;  // enough for the longest block tasks
    norm.channel_count = scale.channel_count = 64;
    norm.plane_size = scale.plane_size = plane;
    const int64_t floats = int64_t{32768} * 64 * plane;
    ASSERT_EQ(gpushare_kernels_pack_batch_norm(&norm, &task), GPUSHARE_KERNELS_OK) << Message();
    const auto packed = Unpack<BatchNormParams>(task, "batch_norm");
    ExpectCovered(packed.tensor, task.block_tasks, floats);
    EXPECT_EQ(packed.mean, norm.mean);
    EXPECT_EQ(packed.variance, norm.variance);
    ASSERT_EQ(gpushare_kernels_pack_scale(&scale, &task), GPUSHARE_KERNELS_OK) << Message();
    ExpectCovered(Unpack<ScaleParams>(task, "scale").tensor, task.block_tasks, floats);
  }
  scale.plane_size = 16;
  ExpectInvalid(gpushare_kernels_pack_scale(&scale, &task), "'plane_size' from 20");
  scale.plane_size = 20;
  scale.image_count = 3;
  ExpectInvalid(gpushare_kernels_pack_scale(&scale, &task), "elements in multiples of 4096");
  scale.image_count = int64_t{1} << 40;
  ExpectInvalid(gpushare_kernels_pack_scale(&scale, &task), "elements, and there are more");
}

TEST(KernelPackTest, ElementwiseKernelsCoverTheirElements) {
  gpushare_relu_params relu = GPUSHARE_RELU_PARAMS_INIT;
  relu.input = Address(0);
  relu.output = Address(0);  // in place
  gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
  for (const int64_t units : {1, 3, 1009, 65536}) {
    relu.count = units * 4096;
    ASSERT_EQ(gpushare_kernels_pack_relu(&relu, &task), GPUSHARE_KERNELS_OK) << Message();
    const auto packed = Unpack<ReluParams>(task, "relu");
    EXPECT_EQ(packed.passes % kReluUnroll, 0U);
    EXPECT_EQ(packed.ring, task.block_tasks);
    EXPECT_EQ(task.block_tasks * packed.passes * kReluFloatsPerPass, relu.count);
  }
  relu.count = 5000;
  ExpectInvalid(gpushare_kernels_pack_relu(&relu, &task), "multiples of 4096");

  gpushare_sgd_params sgd = GPUSHARE_SGD_PARAMS_INIT;
  sgd.rate = 0.1F;
  sgd.momentum = 0.9F;
  sgd.decay = 1e-4F;
  sgd.weights = Address(0);
  sgd.gradients = Address(1);
  sgd.velocities = Address(2);
  sgd.new_weights = Address(0);
  sgd.new_velocities = Address(2);
  sgd.count = 1024 * 1001;
  ASSERT_EQ(gpushare_kernels_pack_sgd(&sgd, &task), GPUSHARE_KERNELS_OK) << Message();
  const auto packed = Unpack<SgdParams>(task, "sgd");
  EXPECT_EQ(packed.ring, task.block_tasks);
  EXPECT_EQ(task.block_tasks * packed.passes * kSgdFloatsPerPass, sgd.count);
  EXPECT_EQ(packed.momentum, sgd.momentum);
  sgd.count = 1000;
  ExpectInvalid(gpushare_kernels_pack_sgd(&sgd, &task), "'count' from 1024");
}

TEST(KernelPackTest, AdamCorrectsItsMoments) {
  gpushare_adam_params params = GPUSHARE_ADAM_PARAMS_INIT;
  params.rate = 1e-3F;
  params.beta1 = 0.9F;
  params.beta2 = 0.999F;
  params.epsilon = 1e-8F;
  params.step = 3;
  params.weights = Address(0);
  params.gradients = Address(1);
  params.first = Address(2);
  params.second = Address(3);
  params.new_weights = Address(4);
  params.new_first = Address(5);
  params.new_second = Address(6);
  params.count = 1 << 20;
  gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
  ASSERT_EQ(gpushare_kernels_pack_adam(&params, &task), GPUSHARE_KERNELS_OK) << Message();
  const auto packed = Unpack<AdamParams>(task, "adam");
  EXPECT_EQ(packed.ring, task.block_tasks);
  EXPECT_EQ(task.block_tasks * packed.passes * kAdamFloatsPerPass, params.count);
  // 1 - 0.9^3 = 0.271, and the root of 1 - 0.999^3 = 0.002997001.
  EXPECT_NEAR(packed.rate, 1e-3 * std::sqrt(0.002997001) / 0.271, 1e-8);
  EXPECT_NEAR(packed.epsilon, 1e-8 * std::sqrt(0.002997001), 1e-14);
  params.step = 0;
  ASSERT_EQ(gpushare_kernels_pack_adam(&params, &task), GPUSHARE_KERNELS_OK) << Message();
  EXPECT_EQ(Unpack<AdamParams>(task, "adam").rate, params.rate);
  params.beta2 = 1;
  ExpectInvalid(gpushare_kernels_pack_adam(&params, &task), "'beta2'");
  params.beta2 = 0.999F;
  params.step = -1;
  ExpectInvalid(gpushare_kernels_pack_adam(&params, &task), "'step'");
  params.step = 1;
  params.second = nullptr;
  ExpectInvalid(gpushare_kernels_pack_adam(&params, &task), "'second'");
}

// Every result of every plane has one item of one block task.
TEST(KernelPackTest, PoolingCoversItsPlanes) {
  gpushare_pooling_params params = GPUSHARE_POOLING_PARAMS_INIT;
  params.mode = GPUSHARE_POOLING_AVERAGE;
  params.input = Address(0);
  params.output = Address(1);
  gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
  struct Size {
    int64_t planes, height, width;
  };
  for (const Size& size : {Size{3, 14, 28}, Size{64, 112, 112}, Size{1, 2, 4}, Size{7, 26, 12}}) {
    params.plane_count = size.planes;
    params.height = size.height;
    params.width = size.width;
    ASSERT_EQ(gpushare_kernels_pack_pooling(&params, &task), GPUSHARE_KERNELS_OK) << Message();
    const auto packed = Unpack<PoolingParams>(task, "pooling");
    EXPECT_EQ(packed.average, 1U);
    EXPECT_EQ(packed.ring, task.block_tasks);
    std::vector<int> written(
        static_cast<size_t>(size.planes * (size.height / 2) * (size.width / 2)));
    for (uint32_t slot = 0; slot < packed.ring; ++slot) {
      for (uint32_t item = 0; item < packed.strips * packed.groups.divisor; ++item) {
        const PoolingItem found = PoolingItemOf(packed, slot, item);
        for (uint32_t row = 0; row < packed.rows; ++row) {
          for (uint32_t column = 0; column < 2; ++column) {
            ++written.at(found.out_at + row * packed.width / 2 + column);
          }
        }
      }
    }
    EXPECT_THAT(written, testing::Each(1));
  }
  params.mode = 0;
  ExpectInvalid(gpushare_kernels_pack_pooling(&params, &task), "'mode'");
  params.mode = GPUSHARE_POOLING_MAXIMUM;
  params.width = 6;
  ExpectInvalid(gpushare_kernels_pack_pooling(&params, &task), "'width'");
  params.width = int64_t{1} << 32;
  ExpectInvalid(gpushare_kernels_pack_pooling(&params, &task), "input elements");
}

TEST(KernelPackTest, Im2colCoversItsTiles) {
  gpushare_im2col_params params = GPUSHARE_IM2COL_PARAMS_INIT;
  params.input = Address<void>(0);
  params.output = Address<void>(1);
  params.image_count = 5;
  params.channel_count = 48;
  params.height = 15;
  params.width = 31;
  gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
  for (const uint32_t bytes : {2U, 4U}) {
    params.element_size_bytes = bytes;
    ASSERT_EQ(gpushare_kernels_pack_im2col(&params, &task), GPUSHARE_KERNELS_OK) << Message();
    const auto packed = Unpack<Im2colParams>(task, bytes == 2 ? "im2col" : "im2col_float");
    EXPECT_EQ(packed.ring, task.block_tasks);
    EXPECT_EQ(packed.ring * packed.tiles, Im2colTiles(packed.shape));
    EXPECT_EQ(packed.shape.channels, 48U);
  }
  params.element_size_bytes = 3;
  ExpectInvalid(gpushare_kernels_pack_im2col(&params, &task), "'element_size_bytes'");
  params.element_size_bytes = 2;
  params.channel_count = 24;
  ExpectInvalid(gpushare_kernels_pack_im2col(&params, &task), "multiples of 16, and it is 24");
  params.channel_count = 16;
  params.image_count = int64_t{1} << 31;
  ExpectInvalid(gpushare_kernels_pack_im2col(&params, &task), "output elements");
}

TEST(KernelPackTest, GemmCoversItsTiles) {
  gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
  const gpushare_gemm_params params = Gemm(1000, 520, 64);
  ASSERT_EQ(gpushare_kernels_pack_gemm(IndexOf("gemm_mma"), &params, &task), GPUSHARE_KERNELS_OK)
      << Message();
  const auto packed = Unpack<GemmMmaParams>(task, "gemm_mma");
  EXPECT_EQ(packed.tiles_m, 8U);
  EXPECT_EQ(packed.tiles_n, 5U);
  EXPECT_EQ(task.block_tasks, 40);
  EXPECT_EQ(packed.b, params.b);
}

TEST(KernelPackTest, GemmRefusesBadPointersAndSizes) {
  gpushare_kernels_task task = GPUSHARE_KERNELS_TASK_INIT;
  for (const char* const name :
       {"gemm_wgmma", "gemm_roomy", "gemm_mma", "gemm_skinny", "gemm_skinny_compact"}) {
    const auto refused = [&](const gpushare_gemm_params& params, const std::string& text) {
      ExpectInvalid(gpushare_kernels_pack_gemm(IndexOf(name), &params, &task), text);
    };
    gpushare_gemm_params params = Gemm(32, 64, 64);
    params.c = nullptr;
    refused(params, "'c', and it is null");
    params = Gemm(32, 64, 64);
    params.b = static_cast<const char*>(params.b) + 8;
    refused(params, "'b' at a multiple of 16 bytes");
    refused(Gemm(0, 64, 64), "'m'");
    refused(Gemm(32, int64_t{1} << 31, 64), "'n'");
    refused(Gemm(32, 64, 63), "32 x 64 x 63");
    refused(Gemm(32, 62, 64), "32 x 62 x 64");
  }
  const gpushare_gemm_params params = Gemm(32, 64, 64);
  ExpectInvalid(gpushare_kernels_pack_gemm(IndexOf("softmax"), &params, &task),
                "takes gpushare_softmax_params");
  ExpectFails(gpushare_kernels_pack_gemm(999, &params, &task), GPUSHARE_KERNELS_OUT_OF_RANGE,
              "999");
  ExpectInvalid(gpushare_kernels_pack_gemm(IndexOf("gemm_skinny"), nullptr, &task), "null");
  const gpushare_gemm_params nine_rows = Gemm(9, 64, 64);
  ExpectInvalid(gpushare_kernels_pack_gemm(IndexOf("gemm_skinny"), &nine_rows, &task),
                "m must be 8, 16 or 32");
  const gpushare_gemm_params huge = Gemm(INT32_MAX, INT32_MAX - 7, 8);
  ExpectInvalid(gpushare_kernels_pack_gemm(IndexOf("gemm_mma"), &huge, &task), "tiles");
}

// On a machine without a GPU or driver nothing is loaded, and the answer is a sentence.
TEST(KernelDeviceTest, LoadsOrSaysWhyNot) {
  for (uint32_t i = 0; i < gpushare_kernels_count(); ++i) {
    gpushare_kernel_variants variants = {};
    const gpushare_kernels_status status = gpushare_kernels_variants(i, &variants);
    if (status == GPUSHARE_KERNELS_OK) {
      EXPECT_NE(variants.worker_function, nullptr);
      EXPECT_GT(variants.workers_per_sm, 0U);
    } else {
      ExpectFails(status, GPUSHARE_KERNELS_UNAVAILABLE, "fails");
      EXPECT_EQ(variants.worker_function, nullptr);
    }
  }
}

}  // namespace
}  // namespace gpushare::kernels

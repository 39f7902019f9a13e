// Packs the DRAM-bound kernels of deep networks: checks a problem and cuts it into block tasks.
//
// A body's block task has a fixed amount of work and no bounds to check, so that a problem is a
// whole number of equal parts (task.h). The lengths of block tasks are those of the catalogue
// (benchmarks/kernels), at which workers cost nothing over the original grid.

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/dnn/adam.h"
#include "kernels/dnn/batch_norm.h"
#include "kernels/dnn/im2col.h"
#include "kernels/dnn/layer_norm.h"
#include "kernels/dnn/pooling.h"
#include "kernels/dnn/relu.h"
#include "kernels/dnn/scale.h"
#include "kernels/dnn/sgd.h"
#include "kernels/dnn/softmax.h"
#include "kernels/interface/checks.h"
#include "kernels/interface/errors.h"
#include "kernels/interface/structs.h"
#include "kernels/interface/task.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kVectorBytes = 16;
constexpr int64_t kSizeMax = std::numeric_limits<int64_t>::max();
constexpr uint64_t kElementsMax = uint64_t{1} << 40;             // 4 TB of float32
constexpr uint64_t kRowElementsMax = (uint64_t{1} << 34) - 4;    // vectors are counted in 32 bits
constexpr uint64_t kPlaneElementsMax = (uint64_t{1} << 33) - 4;  // a divider's dividends: 31 bits
constexpr uint64_t kElementsMax32 = 0xFFFFFFFE;                  // elements counted in 32 bits

template <class Params>
gpushare_kernels_status Write(const char* kernel, const Checks& checks, const Params& packed,
                              uint32_t block_tasks, gpushare_kernels_task* out_task) {
  if (!checks.ok()) return FromStatus(checks.status());
  return WriteTask(kernel, &packed, sizeof(packed), {block_tasks, 1, 1}, out_task);
}

gpushare_kernels_status Pack(const gpushare_softmax_params& params, gpushare_kernels_task* out) {
  constexpr double kBlockTaskUs = 27;
  Checks checks("softmax");
  checks.Require(params.reserved == 0, "needs 'reserved' to be 0.");
  checks.Pointer("input", params.input, kVectorBytes);
  checks.Pointer("output", params.output, kVectorBytes);
  checks.Size("row_length", params.row_length, 4, kSoftmaxLengthMax, 4);
  checks.Size("row_count", params.row_count, 1, kSizeMax);
  checks.Product("elements", {params.row_length, params.row_count}, kRowElementsMax);
  // A block works on a row a warp: fewer rows leave warps idle.
  const int64_t unit = params.row_count % kSoftmaxWarps == 0 ? kSoftmaxWarps : 1;
  const double unit_bytes = 2.0 * sizeof(float) * static_cast<double>(unit * params.row_length);
  const Cut cut = CutIntoBlockTasks(static_cast<uint64_t>(params.row_count / unit), unit_bytes,
                                    kBlockTaskUs, &checks);
  const SoftmaxParams packed = {params.input, params.output, cut.block_tasks,
                                cut.share * static_cast<uint32_t>(unit),
                                static_cast<uint32_t>(params.row_length)};
  return Write("softmax", checks, packed, cut.block_tasks, out);
}

gpushare_kernels_status Pack(const gpushare_layer_norm_params& params, gpushare_kernels_task* out) {
  constexpr double kBlockTaskUs = 27;
  Checks checks("layer_norm");
  checks.Pointer("input", params.input, kVectorBytes);
  checks.Pointer("gamma", params.gamma, kVectorBytes);
  checks.Pointer("beta", params.beta, kVectorBytes);
  checks.Pointer("output", params.output, kVectorBytes);
  checks.Require(params.epsilon > 0 && std::isfinite(params.epsilon),
                 "needs a finite 'epsilon' above 0.");
  checks.Size("row_length", params.row_length, 4, kLayerNormLengthMax, 4);
  checks.Size("row_count", params.row_count, kLayerNormRows, kSizeMax, kLayerNormRows);
  checks.Product("elements", {params.row_length, params.row_count}, kRowElementsMax);
  const double unit_bytes =
      2.0 * sizeof(float) * kLayerNormRows * static_cast<double>(params.row_length);
  const Cut cut = CutIntoBlockTasks(static_cast<uint64_t>(params.row_count / kLayerNormRows),
                                    unit_bytes, kBlockTaskUs, &checks);
  const LayerNormParams packed = {params.input,
                                  params.gamma,
                                  params.beta,
                                  params.output,
                                  cut.block_tasks,
                                  cut.share * kLayerNormRows,
                                  static_cast<uint32_t>(params.row_length),
                                  params.epsilon};
  return Write("layer_norm", checks, packed, cut.block_tasks, out);
}

// The NCHW tensor of batch_norm and scale. `params` has the fields of either.
template <class Params>
AffineTensor CutTensor(const Params& params, Checks* checks) {
  constexpr double kBlockTaskUs = 40;
  constexpr uint64_t kUnitFloats = uint64_t{kAffineUnroll} * kAffineFloatsPerPass;
  constexpr int64_t kPlaneMin = 20;  // so that a unit touches kAffinePlanesMax planes at most
  checks->Pointer("input", params.input, kVectorBytes);
  checks->Pointer("output", params.output, kVectorBytes);
  checks->Pointer("gamma", params.gamma, sizeof(float));
  checks->Pointer("beta", params.beta, sizeof(float));
  checks->Size("image_count", params.image_count, 1, kSizeMax);
  checks->Size("channel_count", params.channel_count, 1, kSizeMax);
  checks->Size("plane_size", params.plane_size, kPlaneMin, kSizeMax, 4);
  const uint64_t floats =
      checks->Product("elements", {params.image_count, params.channel_count, params.plane_size},
                      kPlaneElementsMax, kUnitFloats);
  if (!checks->ok()) return {};
  // A share may begin and end inside a plane, so it touches up to two planes more than fit in it.
  const auto plane_vectors = static_cast<uint32_t>(params.plane_size / 4);
  const double planes_bytes = 2.0 * sizeof(float) * (kAffinePlanesMax - 2) * 4 * plane_vectors;
  const double us = std::fmin(kBlockTaskUs, planes_bytes / kWorkerBytesPerUs);
  const Cut cut =
      CutIntoBlockTasks(floats / kUnitFloats, 2.0 * sizeof(float) * kUnitFloats, us, checks);
  return {params.input,
          params.output,
          cut.block_tasks,
          cut.share * kAffineUnroll,
          MakeDivider(plane_vectors),
          MakeDivider(static_cast<uint32_t>(params.channel_count))};
}

gpushare_kernels_status Pack(const gpushare_batch_norm_params& params, gpushare_kernels_task* out) {
  Checks checks("batch_norm");
  checks.Pointer("mean", params.mean, sizeof(float));
  checks.Pointer("variance", params.variance, sizeof(float));
  checks.Require(params.epsilon > 0 && std::isfinite(params.epsilon),
                 "needs a finite 'epsilon' above 0.");
  const AffineTensor tensor = CutTensor(params, &checks);
  const BatchNormParams packed = {tensor,      params.gamma,    params.beta,
                                  params.mean, params.variance, params.epsilon};
  return Write("batch_norm", checks, packed, tensor.ring, out);
}

gpushare_kernels_status Pack(const gpushare_scale_params& params, gpushare_kernels_task* out) {
  Checks checks("scale");
  checks.Require(params.reserved == 0, "needs 'reserved' to be 0.");
  const AffineTensor tensor = CutTensor(params, &checks);
  const ScaleParams packed = {tensor, params.gamma, params.beta};
  return Write("scale", checks, packed, tensor.ring, out);
}

gpushare_kernels_status Pack(const gpushare_relu_params& params, gpushare_kernels_task* out) {
  constexpr double kBlockTaskUs = 40;
  constexpr int64_t kUnitFloats = int64_t{kReluUnroll} * kReluFloatsPerPass;
  Checks checks("relu");
  checks.Require(params.reserved == 0, "needs 'reserved' to be 0.");
  checks.Pointer("input", params.input, kVectorBytes);
  checks.Pointer("output", params.output, kVectorBytes);
  checks.Size("count", params.count, kUnitFloats, kElementsMax, kUnitFloats);
  const Cut cut = CutIntoBlockTasks(static_cast<uint64_t>(params.count / kUnitFloats),
                                    2.0 * sizeof(float) * kUnitFloats, kBlockTaskUs, &checks);
  const ReluParams packed = {params.input, params.output, cut.block_tasks, cut.share * kReluUnroll};
  return Write("relu", checks, packed, cut.block_tasks, out);
}

gpushare_kernels_status Pack(const gpushare_pooling_params& params, gpushare_kernels_task* out) {
  constexpr double kBlockTaskUs = 20;  // a worker of eight an SM: 40 us
  constexpr uint32_t kRowsMax = 8;     // of results in a strip
  Checks checks("pooling");
  checks.Require(params.mode == GPUSHARE_POOLING_MAXIMUM || params.mode == GPUSHARE_POOLING_AVERAGE,
                 "needs 'mode' to be GPUSHARE_POOLING_MAXIMUM or GPUSHARE_POOLING_AVERAGE.");
  checks.Pointer("input", params.input, kVectorBytes);
  checks.Pointer("output", params.output, kVectorBytes);
  checks.Size("plane_count", params.plane_count, 1, kSizeMax);
  checks.Size("height", params.height, 2, kSizeMax, 2);
  checks.Size("width", params.width, 4, kSizeMax, 4);
  checks.Product("input elements", {params.plane_count, params.height, params.width},
                 kElementsMax32);
  if (!checks.ok()) return FromStatus(checks.status());
  const auto results = static_cast<uint32_t>(params.height / 2);
  uint32_t rows = results < kRowsMax ? results : kRowsMax;
  while (results % rows != 0) --rows;
  const uint32_t strips_per_plane = results / rows;
  const double strip_bytes =
      1.25 * sizeof(float) * 2 * rows * static_cast<double>(params.width);  // a result for 4 values
  const Cut cut = CutIntoBlockTasks(static_cast<uint64_t>(params.plane_count) * strips_per_plane,
                                    strip_bytes, kBlockTaskUs, &checks);
  const auto width = static_cast<uint32_t>(params.width);
  const PoolingParams packed = {params.input,
                                params.output,
                                cut.block_tasks,
                                cut.share,
                                rows,
                                width,
                                static_cast<uint32_t>(params.height),
                                params.mode == GPUSHARE_POOLING_AVERAGE ? 1U : 0U,
                                MakeDivider(width / 4),
                                MakeDivider(strips_per_plane)};
  return Write("pooling", checks, packed, cut.block_tasks, out);
}

gpushare_kernels_status Pack(const gpushare_im2col_params& params, gpushare_kernels_task* out) {
  constexpr double kBlockTaskUs = 30;
  constexpr uint32_t kOutputAlignment = 32;
  const char* const kernel = params.element_size_bytes == sizeof(float) ? "im2col_float" : "im2col";
  Checks checks(kernel);
  checks.Size("element_size_bytes", params.element_size_bytes, 2, 4, 2);
  checks.Pointer("input", params.input, params.element_size_bytes == sizeof(float) ? 4 : 2);
  checks.Pointer("output", params.output, kOutputAlignment);
  checks.Size("image_count", params.image_count, 1, kSizeMax);
  checks.Size("channel_count", params.channel_count, kIm2colChannels, kSizeMax, kIm2colChannels);
  checks.Size("height", params.height, 1, kSizeMax);
  checks.Size("width", params.width, 1, kSizeMax);
  checks.Product(
      "output elements",
      {kIm2colTaps, params.image_count, params.channel_count, params.height, params.width},
      kElementsMax32);
  if (!checks.ok()) return FromStatus(checks.status());
  const Im2colShape shape = {
      static_cast<uint32_t>(params.image_count), static_cast<uint32_t>(params.channel_count),
      static_cast<uint32_t>(params.height), static_cast<uint32_t>(params.width)};
  // Ten values for a pixel and channel: one read, nine written.
  const double tile_bytes =
      (1.0 + kIm2colTaps) * params.element_size_bytes * kIm2colPixels * kIm2colChannels;
  const Cut cut = CutIntoBlockTasks(Im2colTiles(shape), tile_bytes, kBlockTaskUs, &checks);
  const Im2colParams packed = {params.input, params.output, shape, cut.block_tasks, cut.share};
  return Write(kernel, checks, packed, cut.block_tasks, out);
}

gpushare_kernels_status Pack(const gpushare_sgd_params& params, gpushare_kernels_task* out) {
  constexpr double kBlockTaskUs = 20;
  constexpr double kBytesPerWeight = 20;
  Checks checks("sgd");
  checks.Pointer("weights", params.weights, kVectorBytes);
  checks.Pointer("gradients", params.gradients, kVectorBytes);
  checks.Pointer("velocities", params.velocities, kVectorBytes);
  checks.Pointer("new_weights", params.new_weights, kVectorBytes);
  checks.Pointer("new_velocities", params.new_velocities, kVectorBytes);
  checks.Size("count", params.count, kSgdFloatsPerPass, kElementsMax, kSgdFloatsPerPass);
  const Cut cut = CutIntoBlockTasks(static_cast<uint64_t>(params.count / kSgdFloatsPerPass),
                                    kBytesPerWeight * kSgdFloatsPerPass, kBlockTaskUs, &checks);
  const SgdParams packed = {params.weights,     params.gradients,      params.velocities,
                            params.new_weights, params.new_velocities, cut.block_tasks,
                            cut.share,          params.rate,           params.momentum,
                            params.decay};
  return Write("sgd", checks, packed, cut.block_tasks, out);
}

// Kingma and Ba, the end of section 2: the corrections of both moments go into the rate and into
// epsilon.
void CorrectMoments(const gpushare_adam_params& params, float* rate, float* epsilon) {
  *rate = params.rate;
  *epsilon = params.epsilon;
  if (params.step == 0) return;
  const double step = static_cast<double>(params.step);
  const double first = 1 - std::pow(static_cast<double>(params.beta1), step);
  const double root = std::sqrt(1 - std::pow(static_cast<double>(params.beta2), step));
  *rate = static_cast<float>(params.rate * root / first);
  *epsilon = static_cast<float>(params.epsilon * root);
}

gpushare_kernels_status Pack(const gpushare_adam_params& params, gpushare_kernels_task* out) {
  constexpr double kBlockTaskUs = 20;
  constexpr double kBytesPerWeight = 28;
  Checks checks("adam");
  checks.Require(params.reserved == 0, "needs 'reserved' to be 0.");
  checks.Require(params.beta1 >= 0 && params.beta1 < 1 && params.beta2 >= 0 && params.beta2 < 1,
                 "needs 'beta1' and 'beta2' from 0 to below 1.");
  checks.Require(params.epsilon >= 0 && std::isfinite(params.epsilon),
                 "needs a finite 'epsilon' of 0 or above.");
  checks.Size("step", params.step, 0, kSizeMax);
  checks.Pointer("weights", params.weights, kVectorBytes);
  checks.Pointer("gradients", params.gradients, kVectorBytes);
  checks.Pointer("first", params.first, kVectorBytes);
  checks.Pointer("second", params.second, kVectorBytes);
  checks.Pointer("new_weights", params.new_weights, kVectorBytes);
  checks.Pointer("new_first", params.new_first, kVectorBytes);
  checks.Pointer("new_second", params.new_second, kVectorBytes);
  checks.Size("count", params.count, kAdamFloatsPerPass, kElementsMax, kAdamFloatsPerPass);
  const Cut cut = CutIntoBlockTasks(static_cast<uint64_t>(params.count / kAdamFloatsPerPass),
                                    kBytesPerWeight * kAdamFloatsPerPass, kBlockTaskUs, &checks);
  AdamParams packed = {};
  packed.weights = params.weights;
  packed.gradients = params.gradients;
  packed.first = params.first;
  packed.second = params.second;
  packed.new_weights = params.new_weights;
  packed.new_first = params.new_first;
  packed.new_second = params.new_second;
  packed.ring = cut.block_tasks;
  packed.passes = cut.share;
  CorrectMoments(params, &packed.rate, &packed.epsilon);
  packed.decay_first = params.beta1;
  packed.decay_second = params.beta2;
  return Write("adam", checks, packed, cut.block_tasks, out);
}

// An entry of the interface: reads the caller's struct, then packs.
template <class Params>
gpushare_kernels_status PackEntry(const char* name, const Params* given,
                                  gpushare_kernels_task* out_task) noexcept {
  return Guard([&] {
    Params params;
    gpushare_kernels_status status = ReadStruct(name, given, &params);
    if (status == GPUSHARE_KERNELS_OK) status = CheckStruct("gpushare_kernels_task", out_task);
    return status == GPUSHARE_KERNELS_OK ? Pack(params, out_task) : status;
  });
}

}  // namespace
}  // namespace gpushare::kernels

using gpushare::kernels::PackEntry;

gpushare_kernels_status gpushare_kernels_pack_softmax(const gpushare_softmax_params* params,
                                                      gpushare_kernels_task* out_task) noexcept {
  return PackEntry("gpushare_softmax_params", params, out_task);
}

gpushare_kernels_status gpushare_kernels_pack_layer_norm(const gpushare_layer_norm_params* params,
                                                         gpushare_kernels_task* out_task) noexcept {
  return PackEntry("gpushare_layer_norm_params", params, out_task);
}

gpushare_kernels_status gpushare_kernels_pack_batch_norm(const gpushare_batch_norm_params* params,
                                                         gpushare_kernels_task* out_task) noexcept {
  return PackEntry("gpushare_batch_norm_params", params, out_task);
}

gpushare_kernels_status gpushare_kernels_pack_scale(const gpushare_scale_params* params,
                                                    gpushare_kernels_task* out_task) noexcept {
  return PackEntry("gpushare_scale_params", params, out_task);
}

gpushare_kernels_status gpushare_kernels_pack_relu(const gpushare_relu_params* params,
                                                   gpushare_kernels_task* out_task) noexcept {
  return PackEntry("gpushare_relu_params", params, out_task);
}

gpushare_kernels_status gpushare_kernels_pack_pooling(const gpushare_pooling_params* params,
                                                      gpushare_kernels_task* out_task) noexcept {
  return PackEntry("gpushare_pooling_params", params, out_task);
}

gpushare_kernels_status gpushare_kernels_pack_im2col(const gpushare_im2col_params* params,
                                                     gpushare_kernels_task* out_task) noexcept {
  return PackEntry("gpushare_im2col_params", params, out_task);
}

gpushare_kernels_status gpushare_kernels_pack_sgd(const gpushare_sgd_params* params,
                                                  gpushare_kernels_task* out_task) noexcept {
  return PackEntry("gpushare_sgd_params", params, out_task);
}

gpushare_kernels_status gpushare_kernels_pack_adam(const gpushare_adam_params* params,
                                                   gpushare_kernels_task* out_task) noexcept {
  return PackEntry("gpushare_adam_params", params, out_task);
}

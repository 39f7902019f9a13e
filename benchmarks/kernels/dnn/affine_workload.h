// What the workloads of scale and batch_norm share: tensor, shape, and the arrays of one value a
// channel.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_DNN_AFFINE_WORKLOAD_H_
#define GPUSHARE_BENCHMARKS_KERNELS_DNN_AFFINE_WORKLOAD_H_

#include "benchmarks/kernels/dnn/sizes.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/dnn/affine.h"

namespace gpushare::kernels {

class AffineWorkload : public RecordWorkload {
 protected:
  // Values in [-1, 1); the tensor's last image ends where the last chunk does.
  Status MakeTensor(const CatalogueKernel& kernel, const WorkloadOptions& options,
                    AffineTensor* tensor) {
    seed_ = options.seed;
    const double bytes_per_pass = 2.0 * sizeof(float) * kAffineFloatsPerPass;
    const uint32_t passes = kAffineUnroll * UnitsPerBlockTask(options, kernel.workers_per_sm,
                                                              bytes_per_pass * kAffineUnroll);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    work_per_block_task_ = bytes_per_pass * passes;
    distinct_block_tasks_ = DnnRing(options, grid_.x, work_per_block_task_);
    shape_ = AffineShapeFor(passes);
    const uint64_t floats =
        static_cast<uint64_t>(distinct_block_tasks_) * passes * kAffineFloatsPerPass;
    Status status = input_.Allocate(floats * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, -1.0F, 1.0F);
    if (status.ok()) status = AllocateOutput(floats, 1);
    if (!status.ok()) return status;
    reference_ns_ = 50;
    *tensor = {input_.as<const float>(),
               output_.as<float>(),
               distinct_block_tasks_,
               passes,
               MakeDivider(shape_.plane_vectors()),
               MakeDivider(shape_.channels)};
    return {};
  }

  // One value a channel.
  Status FillChannels(DeviceBuffer* buffer, uint32_t seed, float low, float high) const {
    const Status status = buffer->Allocate(shape_.channels * sizeof(float));
    return status.ok() ? buffer->FillUniform(seed, low, high) : status;
  }

  double Value(uint64_t index) const {
    return Uniform(seed_, static_cast<uint32_t>(index), -1.0F, 1.0F);
  }
  uint32_t Channel(uint64_t index) const {
    return static_cast<uint32_t>(index / (shape_.side * shape_.side) % shape_.channels);
  }

 private:
  AffineShape shape_ = {};
  DeviceBuffer input_;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_DNN_AFFINE_WORKLOAD_H_

// A convolution as two kernels of the contract (Tacker VIII-H): im2col writes the window of each
// pixel as a row, a Tensor-core GEMM multiplies the rows by the filters. So a convolution may be
// fused, evicted and sliced as any GEMM, where a library's may not.
//
//   input    bf16, [batch][channels][height][width]
//   weights  bf16, [filters][channels][3][3]
//   output   bf16, [batch][height][width][filters]: rows of the GEMM are pixels
//
// Windows are im2col's: 3 x 3, stride 1, zeros around the image. Their rows take nine times the
// input's memory, allocated here. Threads: one at a time. An object belongs to the device that was
// current at Make.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_TENSOR_CONVOLUTION_H_
#define GPUSHARE_BENCHMARKS_KERNELS_TENSOR_CONVOLUTION_H_

#include <cstdint>
#include <vector>

#include "benchmarks/kernels/device_buffer.h"
#include "benchmarks/kernels/form_launcher.h"
#include "kernels/dnn/im2col.h"
#include "kernels/tensor/gemm_problem.h"

namespace gpushare::kernels {

struct ConvolutionShape {
  uint32_t batch = 1;
  uint32_t channels = 0;
  uint32_t height = 0;
  uint32_t width = 0;
  uint32_t filters = 0;

  uint64_t Pixels() const { return uint64_t{1} * batch * height * width; }
  uint32_t WindowElements() const { return channels * kIm2colTaps; }
  uint64_t InputElements() const { return Pixels() * channels; }
  uint64_t WeightElements() const { return uint64_t{1} * filters * WindowElements(); }
  uint64_t OutputElements() const { return Pixels() * filters; }
};

// Empty when the chain computes the shape, else a sentence: channels are a multiple of
// kIm2colChannels, filters of 8 (16 bytes), and im2col counts elements in 32 bits.
Status CheckConvolution(const ConvolutionShape& shape);

// A GEMM of the contract, and what makes its parameters.
struct ConvolutionGemm {
  int (*variants)(gpushare_kernel_variants* out);
  Status (*make_params)(const GemmProblem& problem, std::vector<unsigned char>* params, Grid* grid);
};
ConvolutionGemm MmaConvolutionGemm();  // gemm_mma: every GPU from sm_80 on

class Convolution {
 public:
  Convolution() = default;
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  // Device memory of the sizes that the shape says, 16-byte aligned, which outlives the object.
  // Errors: a shape that CheckConvolution refuses, CUDA's.
  Status Make(const ConvolutionShape& shape, const ConvolutionGemm& gemm, const void* input,
              const void* weights, void* output);

  // The two tasks, to be run one after the other, each in any form.
  const FormTask& im2col() const { return im2col_; }
  const FormTask& gemm() const { return gemm_; }

  // Both as original grids on the launcher's stream. Does not block.
  Status Enqueue(FormLauncher* launcher) const;

 private:
  DeviceBuffer windows_;  // [pixel][channel][3][3]
  Im2colParams im2col_params_ = {};
  std::vector<unsigned char> gemm_params_;
  FormTask im2col_;
  FormTask gemm_;
};

// Output element `index` in float64, for inputs and weights of FillPortableInputs with these seeds.
double ConvolutionReference(const ConvolutionShape& shape, uint32_t input_seed,
                            uint32_t weight_seed, uint64_t index);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_TENSOR_CONVOLUTION_H_

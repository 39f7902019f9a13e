// gpushare kernels: GEMM, softmax, normalisation, optimiser and other kernels of deep networks, in
// the forms that gpushare schedules: an original grid, evictable workers, slices, fused pairs. For
// C, Python (ctypes) and DL frameworks; nvcc is not needed.
//
// The library is libgpushare_kernels.so, CMake target gpushare::kernels. It has its own version: 0,
// so any release may change this interface. This header compiles alone as C99 to C23 and as C++17
// to C++23.
//
// Call sequence, with <gpushare/gpushare.h>:
//   1. gpushare_kernels_find("softmax", &index)
//   2. gpushare_kernels_variants(index, &variants)          once a device
//   3. gpushare_kernel_register(runtime, &options, &kernel)  from `variants`:
//        original_function, worker_function, slice_function, threads_per_block: the same names
//        registers_per_thread        = worker_registers
//        shared_memory_bytes         = static_shared_bytes + dynamic_shared_bytes
//        dynamic_shared_memory_bytes = dynamic_shared_bytes
//        workers_per_sm_max          = workers_per_sm
//        evictable                   = GPUSHARE_CHOICE_YES
//   4. gpushare_kernels_pack_softmax(&params, &task)         once for each problem
//   5. gpushare_submit_be(queue, &options, &ticket)          from `task`:
//        block_tasks, grid_x, grid_y, grid_z, arguments, arguments_size_bytes: the same names
// The time of a block task depends on the problem. A program that runs several problems with one
// kernel registers it once for each, under names of its own, so that each is predicted by itself.
//
// Conventions
// - Functions return a gpushare_kernels_status unless they cannot fail. On failure
//   gpushare_kernels_last_error_message() has the reason, one sentence, for the calling thread.
// - Structs with a struct_size are made with their _INIT macro. The library reads and fills
//   min(struct_size, its own size) bytes. A struct_size below that of version 0 is
//   INVALID_ARGUMENT; a non-zero tail that the library does not know is UNIMPLEMENTED. A reserved
//   field must be 0.
// - Tensors are dense, row-major device memory. Sizes are in elements. Buffers stay the caller's
//   until the task that uses them completes.
// - "The current device" is the one whose CUDA context is current on the calling thread, else
//   device 0.
// - No function launches, synchronises, prints, exits or throws.
#ifndef GPUSHARE_KERNELS_H_
#define GPUSHARE_KERNELS_H_

#include <gpushare/device/fused_description.h>
#include <gpushare/device/kernel_variants.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define GPUSHARE_KERNELS_API __attribute__((visibility("default")))
#else
#define GPUSHARE_KERNELS_API
#endif

// A struct of `type`, zero but for its struct_size.
#ifdef __cplusplus
#define GPUSHARE_KERNELS_NOEXCEPT noexcept
extern "C++" {
template <class Struct>
constexpr Struct gpushare_kernels_detail_init() noexcept {
  Struct value{};
  value.struct_size = static_cast<uint32_t>(sizeof(Struct));
  return value;
}
}
#define GPUSHARE_KERNELS_STRUCT_INIT(type) (::gpushare_kernels_detail_init<type>())
extern "C" {
#else
#define GPUSHARE_KERNELS_NOEXCEPT
#define GPUSHARE_KERNELS_STRUCT_INIT(type) \
  { .struct_size = (uint32_t)sizeof(type) }
#endif

// --- version and errors --------------------------------------------------------------------------

// The number in the SONAME, libgpushare_kernels.so.0.
#define GPUSHARE_KERNELS_VERSION 0

// The version of the library that was loaded; it must equal GPUSHARE_KERNELS_VERSION.
// Threads: any. Owns: nothing. Blocks: no. Errors: none.
GPUSHARE_KERNELS_API uint32_t gpushare_kernels_version(void) GPUSHARE_KERNELS_NOEXCEPT;

// Values are those of gpushare_status, so that gpushare_status_name knows them.
typedef int32_t gpushare_kernels_status;
enum gpushare_kernels_status_value {
  GPUSHARE_KERNELS_OK = 0,
  GPUSHARE_KERNELS_INVALID_ARGUMENT = 3,
  GPUSHARE_KERNELS_NOT_FOUND = 5,       // no kernel of that name
  GPUSHARE_KERNELS_OUT_OF_RANGE = 11,   // an index at or above the count
  GPUSHARE_KERNELS_UNIMPLEMENTED = 12,  // a tail of a struct that this library does not know
  GPUSHARE_KERNELS_INTERNAL = 13,       // our own fault, or no memory
  GPUSHARE_KERNELS_UNAVAILABLE = 14     // no GPU, a GPU that does not run it, or an error of CUDA
};

// The reason of the last call that failed on this thread; "" before the first. It is cut at 1023
// bytes.
// Threads: any; each has its own. Owns: the library; valid until the next failing call on this
// thread. Blocks: no. Errors: none.
GPUSHARE_KERNELS_API const char* gpushare_kernels_last_error_message(void)
    GPUSHARE_KERNELS_NOEXCEPT;

// --- kernels -------------------------------------------------------------------------------------

// Which pipe bounds the kernel when it runs alone.
typedef int32_t gpushare_kernels_bound;
enum gpushare_kernels_bound_value {
  GPUSHARE_KERNELS_BOUND_TENSOR = 1,  // Tensor cores
  GPUSHARE_KERNELS_BOUND_SHARED = 2,  // shared memory
  GPUSHARE_KERNELS_BOUND_DRAM = 3
};

typedef struct gpushare_kernels_info {
  uint32_t struct_size;
  gpushare_kernels_bound bound;
  const char* name;     // "softmax"; static
  const char* summary;  // what it computes, one sentence; static
  const char* params;  // the struct that its pack function takes: "gpushare_softmax_params"; static
  int32_t compute_capability_min;  // 80: sm_80
  int32_t compute_capability_max;  // 0: no upper bound; 90: sm_90a's instructions
} gpushare_kernels_info;
#define GPUSHARE_KERNELS_INFO_INIT GPUSHARE_KERNELS_STRUCT_INIT(gpushare_kernels_info)

// How many kernels there are. An index is valid for the library that was loaded; a name is for all.
// Threads: any. Owns: nothing. Blocks: no. Errors: none.
GPUSHARE_KERNELS_API uint32_t gpushare_kernels_count(void) GPUSHARE_KERNELS_NOEXCEPT;

// Threads: any. Owns: strings are static. Blocks: no. Errors: OUT_OF_RANGE, INVALID_ARGUMENT.
GPUSHARE_KERNELS_API gpushare_kernels_status gpushare_kernels_info_get(
    uint32_t kernel, gpushare_kernels_info* out_info) GPUSHARE_KERNELS_NOEXCEPT;

// Threads: any. Owns: nothing. Blocks: no. Errors: NOT_FOUND, INVALID_ARGUMENT.
GPUSHARE_KERNELS_API gpushare_kernels_status
gpushare_kernels_find(const char* name, uint32_t* out_kernel) GPUSHARE_KERNELS_NOEXCEPT;

// The CUfunctions of a kernel and what they need, for the current device.
// Threads: any. Owns: functions live as long as the device's primary context. Blocks: the first
// call loads the kernel's code. Errors: OUT_OF_RANGE, INVALID_ARGUMENT, UNAVAILABLE.
GPUSHARE_KERNELS_API gpushare_kernels_status gpushare_kernels_variants(
    uint32_t kernel, gpushare_kernel_variants* out_variants) GPUSHARE_KERNELS_NOEXCEPT;

// --- fused pairs ---------------------------------------------------------------------------------

// A kernel whose blocks hold blocks of two kernels of the list above.
typedef struct gpushare_kernels_fused_info {
  uint32_t struct_size;
  uint32_t tensor_kernel;  // index of the Tensor-core part
  uint32_t cuda_kernel;    // index of the other part
  int32_t tensor_blocks;   // of a fused block: the ratio
  int32_t cuda_blocks;
  int32_t form;      // GPUSHARE_FUSED_PLAIN or GPUSHARE_FUSED_SETMAXNREG
  const char* name;  // static
} gpushare_kernels_fused_info;
#define GPUSHARE_KERNELS_FUSED_INFO_INIT GPUSHARE_KERNELS_STRUCT_INIT(gpushare_kernels_fused_info)

// Threads: any. Owns: nothing. Blocks: no. Errors: none.
GPUSHARE_KERNELS_API uint32_t gpushare_kernels_fused_count(void) GPUSHARE_KERNELS_NOEXCEPT;

// Threads: any. Owns: strings are static. Blocks: no. Errors: OUT_OF_RANGE, INVALID_ARGUMENT.
GPUSHARE_KERNELS_API gpushare_kernels_status gpushare_kernels_fused_info_get(
    uint32_t fused, gpushare_kernels_fused_info* out_info) GPUSHARE_KERNELS_NOEXCEPT;

// For gpushare_fused_kernel_register, whose fields have the same names; `function` is null where
// the current device cannot run the pair. Threads, Owns, Blocks, Errors: as
// gpushare_kernels_variants.
GPUSHARE_KERNELS_API gpushare_kernels_status gpushare_kernels_fused_variants(
    uint32_t fused, gpushare_fused_variants* out_variants) GPUSHARE_KERNELS_NOEXCEPT;

// --- tasks ---------------------------------------------------------------------------------------

#define GPUSHARE_KERNELS_ARGUMENTS_WORDS 64

// What a pack function fills: one execution of a kernel on one problem. It may be submitted any
// number of times.
typedef struct gpushare_kernels_task {
  uint32_t struct_size;
  uint32_t kernel;      // whose arguments these are: register and submit this one
  int64_t block_tasks;  // blocks of the original grid
  int32_t grid_x;
  int32_t grid_y;
  int32_t grid_z;
  uint32_t arguments_size_bytes;
  uint64_t arguments[GPUSHARE_KERNELS_ARGUMENTS_WORDS];  // packed, as the kernel takes them
} gpushare_kernels_task;
#define GPUSHARE_KERNELS_TASK_INIT GPUSHARE_KERNELS_STRUCT_INIT(gpushare_kernels_task)

// All pack functions: Threads: any. Owns: nothing; params and out_task are only read and filled
// during the call. Blocks: no. Errors: INVALID_ARGUMENT a null pointer, a size or an alignment that
// the kernel does not take; UNIMPLEMENTED an unknown tail. On failure *out_task is unchanged.
//
// A block task of a GEMM is one or two tiles of C (gemm_skinny: 64 columns) over all of k: its time
// grows with k. The other problems are cut into block tasks of 20 to 40 us on an H200, or shorter
// ones where the problem is too small to give every SM four. These are equal parts: sizes with
// small divisors are faster than, for example, a prime number of rows.
//
// Where an output may be an input, it is computed in place: every block task runs exactly once,
// evicted or not.

// C[m, n] = A[m, k] * B[n, k]^T, with float32 sums that are rounded once to bf16. B is the weight
// of a linear layer as frameworks keep it.
//   gemm_wgmma, gemm_roomy   n and k multiples of 8; compute capability 9.0. gemm_roomy leaves
//                            registers and shared memory of an SM to a fused neighbour.
//   gemm_mma                 n and k multiples of 8
//   gemm_skinny, gemm_skinny_compact   m 8, 16 or 32, n a multiple of 64, k a multiple of 32: few
//                            tokens against large weights. The compact form fits beside gemm_roomy.
typedef struct gpushare_gemm_params {
  uint32_t struct_size;
  uint32_t reserved;  // must be 0
  const void* a;      // bf16 [m][k], 16-byte aligned
  const void* b;      // bf16 [n][k], 16-byte aligned
  void* c;            // bf16 [m][n], 16-byte aligned; overlaps neither a nor b
  int64_t m;
  int64_t n;
  int64_t k;
} gpushare_gemm_params;
#define GPUSHARE_GEMM_PARAMS_INIT GPUSHARE_KERNELS_STRUCT_INIT(gpushare_gemm_params)

// `kernel` is the index of one of the five. The arguments hold TMA tensor maps, which the driver of
// the current device encodes: UNAVAILABLE too.
GPUSHARE_KERNELS_API gpushare_kernels_status
gpushare_kernels_pack_gemm(uint32_t kernel, const gpushare_gemm_params* params,
                           gpushare_kernels_task* out_task) GPUSHARE_KERNELS_NOEXCEPT;

// output[r][i] = exp(input[r][i] - max of row r) / the sum of these over row r
typedef struct gpushare_softmax_params {
  uint32_t struct_size;
  uint32_t reserved;   // must be 0
  const float* input;  // float32 [row_count][row_length], 16-byte aligned; below 2^34 elements
  float* output;       // the same; may be input
  int64_t row_count;   // multiples of 8 are fastest
  int64_t row_length;  // 4 to 512, a multiple of 4
} gpushare_softmax_params;
#define GPUSHARE_SOFTMAX_PARAMS_INIT GPUSHARE_KERNELS_STRUCT_INIT(gpushare_softmax_params)

GPUSHARE_KERNELS_API gpushare_kernels_status
gpushare_kernels_pack_softmax(const gpushare_softmax_params* params,
                              gpushare_kernels_task* out_task) GPUSHARE_KERNELS_NOEXCEPT;

// output[r][i] = gamma[i] * (input[r][i] - mean of row r) / sqrt(variance of row r + epsilon) +
// beta[i], with the biased variance
typedef struct gpushare_layer_norm_params {
  uint32_t struct_size;
  float epsilon;       // above 0, for example 1e-5
  const float* input;  // float32 [row_count][row_length], 16-byte aligned; below 2^34 elements
  const float* gamma;  // float32 [row_length], 16-byte aligned
  const float* beta;   // float32 [row_length], 16-byte aligned
  float* output;       // as input; may be input
  int64_t row_count;   // a multiple of 4
  int64_t row_length;  // 4 to 1024, a multiple of 4
} gpushare_layer_norm_params;
#define GPUSHARE_LAYER_NORM_PARAMS_INIT GPUSHARE_KERNELS_STRUCT_INIT(gpushare_layer_norm_params)

GPUSHARE_KERNELS_API gpushare_kernels_status
gpushare_kernels_pack_layer_norm(const gpushare_layer_norm_params* params,
                                 gpushare_kernels_task* out_task) GPUSHARE_KERNELS_NOEXCEPT;

// Inference with the statistics of the training:
// output[n][c][i] = gamma[c] * (input[n][c][i] - mean[c]) / sqrt(variance[c] + epsilon) + beta[c]
typedef struct gpushare_batch_norm_params {
  uint32_t struct_size;
  float epsilon;       // above 0, for example 1e-5
  const float* input;  // float32 [image_count][channel_count][plane_size], 16-byte aligned
  const float* gamma;  // float32 [channel_count], as the next three
  const float* beta;
  const float* mean;
  const float* variance;
  float* output;        // as input; may be input
  int64_t image_count;  // all elements together: a multiple of 4096, below 2^33
  int64_t channel_count;
  int64_t plane_size;  // height * width: a multiple of 4, at least 20
} gpushare_batch_norm_params;
#define GPUSHARE_BATCH_NORM_PARAMS_INIT GPUSHARE_KERNELS_STRUCT_INIT(gpushare_batch_norm_params)

GPUSHARE_KERNELS_API gpushare_kernels_status
gpushare_kernels_pack_batch_norm(const gpushare_batch_norm_params* params,
                                 gpushare_kernels_task* out_task) GPUSHARE_KERNELS_NOEXCEPT;

// output[n][c][i] = gamma[c] * input[n][c][i] + beta[c]
typedef struct gpushare_scale_params {
  uint32_t struct_size;
  uint32_t reserved;    // must be 0
  const float* input;   // float32 [image_count][channel_count][plane_size], 16-byte aligned
  const float* gamma;   // float32 [channel_count]
  const float* beta;    // float32 [channel_count]
  float* output;        // as input; may be input
  int64_t image_count;  // all elements together: a multiple of 4096, below 2^33
  int64_t channel_count;
  int64_t plane_size;  // height * width: a multiple of 4, at least 20
} gpushare_scale_params;
#define GPUSHARE_SCALE_PARAMS_INIT GPUSHARE_KERNELS_STRUCT_INIT(gpushare_scale_params)

GPUSHARE_KERNELS_API gpushare_kernels_status gpushare_kernels_pack_scale(
    const gpushare_scale_params* params, gpushare_kernels_task* out_task) GPUSHARE_KERNELS_NOEXCEPT;

// output[i] = max(input[i], 0)
typedef struct gpushare_relu_params {
  uint32_t struct_size;
  uint32_t reserved;   // must be 0
  const float* input;  // float32 [count], 16-byte aligned
  float* output;       // the same; may be input
  int64_t count;       // a multiple of 4096
} gpushare_relu_params;
#define GPUSHARE_RELU_PARAMS_INIT GPUSHARE_KERNELS_STRUCT_INIT(gpushare_relu_params)

GPUSHARE_KERNELS_API gpushare_kernels_status gpushare_kernels_pack_relu(
    const gpushare_relu_params* params, gpushare_kernels_task* out_task) GPUSHARE_KERNELS_NOEXCEPT;

typedef int32_t gpushare_pooling_mode;
enum gpushare_pooling_mode_value {
  GPUSHARE_POOLING_MAXIMUM = 1,
  GPUSHARE_POOLING_AVERAGE = 2  // over what lies inside of the plane
};

// 3 x 3 windows at a stride of 2, with one row and one column of padding above and left.
typedef struct gpushare_pooling_params {
  uint32_t struct_size;
  gpushare_pooling_mode mode;  // must be given
  const float* input;   // float32 [plane_count][height][width], 16-byte aligned, at most 2^32 - 2
                        // elements
  float* output;        // float32 [plane_count][height / 2][width / 2], 16-byte aligned; not input
  int64_t plane_count;  // images * channels
  int64_t height;       // a multiple of 2
  int64_t width;        // a multiple of 4
} gpushare_pooling_params;
#define GPUSHARE_POOLING_PARAMS_INIT GPUSHARE_KERNELS_STRUCT_INIT(gpushare_pooling_params)

GPUSHARE_KERNELS_API gpushare_kernels_status
gpushare_kernels_pack_pooling(const gpushare_pooling_params* params,
                              gpushare_kernels_task* out_task) GPUSHARE_KERNELS_NOEXCEPT;

// The 3 x 3 windows (stride 1, zeros around the image) of every pixel as rows of a matrix, so that
// a GEMM with the filters [filter][channel][3][3] as B computes the convolution:
//   output[(image * height + y) * width + x][channel * 9 + 3 * r + s] =
//       input[image][channel][y + r - 1][x + s - 1]
typedef struct gpushare_im2col_params {
  uint32_t struct_size;
  uint32_t element_size_bytes;  // 2: bf16, kernel im2col; 4: float32, kernel im2col_float
  const void* input;            // [image_count][channel_count][height][width]
  void* output;  // [image_count * height * width][channel_count * 9], 32-byte aligned,
                 // at most 2^32 - 2 elements; not input
  int64_t image_count;
  int64_t channel_count;  // a multiple of 16
  int64_t height;
  int64_t width;
} gpushare_im2col_params;
#define GPUSHARE_IM2COL_PARAMS_INIT GPUSHARE_KERNELS_STRUCT_INIT(gpushare_im2col_params)

GPUSHARE_KERNELS_API gpushare_kernels_status
gpushare_kernels_pack_im2col(const gpushare_im2col_params* params,
                             gpushare_kernels_task* out_task) GPUSHARE_KERNELS_NOEXCEPT;

// One step of stochastic gradient descent with momentum and weight decay:
//   new_velocities = momentum * velocities + (gradients + decay * weights)
//   new_weights    = weights - rate * new_velocities
typedef struct gpushare_sgd_params {
  uint32_t struct_size;
  float rate;
  float momentum;
  float decay;
  const float* weights;  // float32 [count], 16-byte aligned, as the others
  const float* gradients;
  const float* velocities;
  float* new_weights;     // may be weights
  float* new_velocities;  // may be velocities
  int64_t count;          // a multiple of 1024
} gpushare_sgd_params;
#define GPUSHARE_SGD_PARAMS_INIT GPUSHARE_KERNELS_STRUCT_INIT(gpushare_sgd_params)

GPUSHARE_KERNELS_API gpushare_kernels_status gpushare_kernels_pack_sgd(
    const gpushare_sgd_params* params, gpushare_kernels_task* out_task) GPUSHARE_KERNELS_NOEXCEPT;

// Step `step` of Adam (Kingma and Ba, algorithm 1), with corrected moments:
//   new_first   = beta1 * first + (1 - beta1) * gradients
//   new_second  = beta2 * second + (1 - beta2) * gradients^2
//   new_weights = weights - rate * (new_first / (1 - beta1^step)) /
//                 (sqrt(new_second / (1 - beta2^step)) + epsilon)
typedef struct gpushare_adam_params {
  uint32_t struct_size;
  float rate;
  float beta1;           // 0 to below 1, for example 0.9
  float beta2;           // 0 to below 1, for example 0.999
  float epsilon;         // 0 or above, for example 1e-8
  uint32_t reserved;     // must be 0
  int64_t step;          // from 1; 0: the moments are not corrected
  const float* weights;  // float32 [count], 16-byte aligned, as the others
  const float* gradients;
  const float* first;  // moments
  const float* second;
  float* new_weights;  // may be weights
  float* new_first;    // may be first
  float* new_second;   // may be second
  int64_t count;       // a multiple of 1024
} gpushare_adam_params;
#define GPUSHARE_ADAM_PARAMS_INIT GPUSHARE_KERNELS_STRUCT_INIT(gpushare_adam_params)

GPUSHARE_KERNELS_API gpushare_kernels_status gpushare_kernels_pack_adam(
    const gpushare_adam_params* params, gpushare_kernels_task* out_task) GPUSHARE_KERNELS_NOEXCEPT;

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GPUSHARE_KERNELS_H_

// hardware.md's figures as data, for every test that compares the simulation with them.
//
// Latencies are in microseconds, as on the page. Tests use LC p99 as a ratio to LC alone on the
// same arrivals, and BE as a share of its solo rate.

#ifndef GPUSHARE_TESTS_SIM_MEASURED_ROWS_H_
#define GPUSHARE_TESTS_SIM_MEASURED_ROWS_H_

#include <cstdint>

namespace gpushare::measured {

// "One LC app and one BE app": the first chain at load 0.3.
inline constexpr double kChain1SoloUs = 667;
inline constexpr double kChain1AloneP50Us = 669;
inline constexpr double kChain1AloneP99Us = 2176;
inline constexpr double kChain1PartitionP50Us = 812;
inline constexpr double kChain1PartitionP99Us = 2798;
inline constexpr double kChain1PartitionBe = 0.295;

struct EvictionRow {
  const char* be_kernel;
  double block_task_us;
  double eviction_p50_us, eviction_p99_us;
  double lc_p50_us, lc_p99_us;
  double be;
};
// The 2.7 ms row is one run of 235 queries. The page's queueing model gives p50 4.5 and p99 2.2
// times alone.
inline constexpr EvictionRow kEvictionRows[] = {
    {"sincos_27us", 27, 27, 40, 687, 2218, 0.681},
    {"streaming_59us", 59, 46, 58, 709, 2250, 0.680},
    {"sincos_267us", 267, 233, 262, 891, 2437, 0.684},
    {"sincos_2700us", 2700, 2450, 2560, 4.5 * 669, 2.2 * 2176, 0.684},
};

// "Spatial overlap is the large prize": speeds relative to running alone on the whole GPU.
struct SpatialRow {
  int32_t lc_sms;
  double decode_alone;
  struct Pair {
    double lc, be;
  } sincos, ffma, streaming, gemm;
};
inline constexpr SpatialRow kSpatialRows[] = {
    {124, 0.80, {0.80, 0.07}, {0.79, 0.07}, {0.76, 0.16}, {0.76, 0.06}},
    {108, 0.86, {0.87, 0.20}, {0.87, 0.20}, {0.62, 0.37}, {0.79, 0.15}},
    {100, 0.72, {0.73, 0.27}, {0.72, 0.27}, {0.51, 0.47}, {0.66, 0.22}},
    {84, 0.96, {0.96, 0.39}, {0.96, 0.37}, {0.47, 0.60}, {0.81, 0.30}},
    {68, 0.74, {0.74, 0.53}, {0.72, 0.48}, {0.28, 0.77}, {0.64, 0.47}},
};

// "Elastic partition": the second chain, 84 and 48 SMs.
struct ElasticRow {
  double load;
  double alone_p99_us;
  double evict_all_p99_us, evict_all_be;
  double elastic_p99_us, elastic_be;
  double ffma_p99_us, ffma_be;
  double static_p99_us, static_be;
};
inline constexpr ElasticRow kElasticRows[] = {
    {0.3, 1548, 1562, 0.709, 1558, 0.808, 1583, 0.807, 1538, 0.356},
    {0.5, 2386, 2406, 0.506, 2392, 0.675, 2420, 0.674, 2364, 0.350},
    {0.7, 4130, 4382, 0.304, 4148, 0.543, 4099, 0.542, 4054, 0.345},
};

// "Overlap of Tensor and CUDA cores": share of serial time saved; 0.5 is the maximum.
struct OverlapRow {
  const char* tensor_kernel;
  const char* cuda_kernel;
  double two_kernels, fused;
};
inline constexpr OverlapRow kOverlapRows[] = {
    {"wgmma_loop", "streaming_loop", 0.40, 0.39},
    {"wgmma_loop", "sincos_loop", 0.33, 0.27},
    {"mma_loop", "streaming_loop", 0.39, 0.43},
    {"mma_loop", "sincos_loop", 0.23, 0.21},
    {"wgmma_loop", "ffma_loop", 0, 0},
    {"mma_loop", "ffma_loop", 0, 0},
    {"ffma_loop", "streaming_loop", 0, 0},
};

// fused / TC against load ratio for wgmma + sincos.
struct TwoStagePoint {
  double load_ratio, fused_over_tensor;
};
inline constexpr TwoStagePoint kTwoStageCurve[] = {{0.42, 1.00}, {0.60, 1.04}, {0.81, 1.27},
                                                   {0.99, 1.46}, {1.41, 1.92}, {1.90, 2.46}};

// "A roomy wgmma GEMM": share of serial time saved, where serial includes the cuBLAS GEMM.
struct RoomyRow {
  const char* be_kernel;
  double saved_low, saved_high;
};
inline constexpr double kRoomyOverCublas = 1 / 0.82;
inline constexpr RoomyRow kRoomyRows[] = {
    {"be_streaming", 0.02, 0.06}, {"be_saxpy", 0.02, 0.06},     {"adam", 0.01, 0.03},
    {"be_integer", 0.02, 0.02},   {"be_stencil", -0.17, -0.07}, {"black_scholes", -0.17, -0.07},
    {"mriq", -0.17, -0.07},       {"cutcp", -0.17, -0.07},      {"be_ffma", -0.17, -0.07},
};

// "cuBLASLt leaves no room beside it": the range of serial time saved by the seven resident kinds.
inline constexpr double kCublasLtSavedLow = -0.23;
inline constexpr double kCublasLtSavedHigh = 0.01;
inline constexpr const char* kResidentKinds[] = {
    "be_streaming", "be_ffma", "be_stencil", "be_saxpy", "be_sincos", "be_gather", "be_integer"};

}  // namespace gpushare::measured

#endif  // GPUSHARE_TESTS_SIM_MEASURED_ROWS_H_

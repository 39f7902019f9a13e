/* The kernels of libgpushare_kernels as best-effort (BE) work beside a latency-critical (LC) CUDA
   graph, in C: lists the kernels, serves LC queries alone, then beside evictable GEMMs and
   softmaxes, verifies every result's samples and prints a table. Needs no CUDA toolkit.

   Without a GPU it lists the kernels and says that the rest is skipped. Exit code 1: a call fails
   or a result is wrong. */
#define _POSIX_C_SOURCE 199309L /* nanosleep */
#include <gpushare/gpushare.h>
#include <gpushare/kernels.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_driver.h"

enum {
  ROUNDS = 16,
  GEMM_OUTPUTS = 4, /* of a round: each BE task has an output of its own, so a lost block shows */
  GEMM_M = 8192,
  GEMM_N = 8192,
  GEMM_K = 1024,
  GEMM_TILE = 128, /* one element of each such square is verified */
  SOFTMAX_OUTPUTS = 2,
  SOFTMAX_ROWS = 65536,
  SOFTMAX_LENGTH = 512,
  SOFTMAX_GROUP = 8, /* one row of each such group is verified: a block task has whole groups */
  LC_M = 256,
  LC_NODES = 8, /* GEMMs of LC_M x 1024 x 1024, one after the other */
  QUERIES_ALONE = 200,
  QUERIES_MAX = 4096
};
#define QUERY_GAP_NS 100000

static cuda_driver cuda;

static void check(gpushare_status status) {
  if (status == GPUSHARE_OK) return;
  fprintf(stderr, "%s: %s\n", gpushare_status_name(status), gpushare_last_error_message());
  exit(1);
}

static void check_kernels(gpushare_kernels_status status) {
  if (status == GPUSHARE_KERNELS_OK) return;
  fprintf(stderr, "%s: %s\n", gpushare_status_name(status), gpushare_kernels_last_error_message());
  exit(1);
}

static void check_cuda(int code, const char* step) {
  if (code == 0) return;
  fprintf(stderr, "%s fails with CUDA error %d.\n", step, code);
  exit(1);
}

static void* host_memory(size_t bytes) {
  void* memory = malloc(bytes);
  if (memory != NULL) return memory;
  fprintf(stderr, "There is no host memory left.\n");
  exit(1);
}

static device_pointer device_memory(size_t bytes) {
  device_pointer pointer = 0;
  check_cuda(cuda.allocate(&pointer, bytes), "Allocating device memory");
  return pointer;
}

static void* as_pointer(device_pointer pointer) { return (void*)(uintptr_t)pointer; }

static uint32_t hash(uint32_t seed, uint32_t index) {
  uint32_t h = index * 0x9E3779B1U + seed * 0x85EBCA77U + 0x27D4EB2FU;
  h = (h ^ (h >> 16)) * 0x85EBCA6BU;
  h = (h ^ (h >> 13)) * 0xC2B2AE35U;
  return h ^ (h >> 16);
}

/* Eighths from -1 to 1: bf16 holds them, and float32 sums of their products are exact. */
static float gemm_value(uint32_t seed, uint32_t index) {
  return ((float)(hash(seed, index) % 17) - 8.0F) / 8.0F;
}

static float softmax_value(uint32_t index) {
  return (float)(hash(3, index) % 4096) / 512.0F - 4.0F;
}

static uint16_t to_bf16(float value) { /* exact for gemm_value */
  uint32_t word;
  memcpy(&word, &value, sizeof(word));
  return (uint16_t)(word >> 16);
}

static float from_bf16(uint16_t bits) {
  uint32_t word = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &word, sizeof(value));
  return value;
}

static device_pointer gemm_matrix(uint32_t seed, uint32_t count) {
  uint16_t* host = host_memory(count * sizeof(uint16_t));
  device_pointer pointer = device_memory(count * sizeof(uint16_t));
  uint32_t i;
  for (i = 0; i < count; ++i) host[i] = to_bf16(gemm_value(seed, i));
  check_cuda(cuda.upload(pointer, host, count * sizeof(uint16_t)), "Uploading a matrix");
  free(host);
  return pointer;
}

/* --- the kernels ------------------------------------------------------------------------------ */

static void list_kernels(void) {
  uint32_t i;
  printf("%u kernels and %u fused pairs, interface version %u\n\n", gpushare_kernels_count(),
         gpushare_kernels_fused_count(), gpushare_kernels_version());
  for (i = 0; i < gpushare_kernels_count(); ++i) {
    gpushare_kernels_info info = GPUSHARE_KERNELS_INFO_INIT;
    check_kernels(gpushare_kernels_info_get(i, &info));
    printf("  %-20s %s\n", info.name, info.summary);
  }
  printf("\n");
}

/* The index of a kernel, and its variants on this GPU. 0: the GPU runs it. */
static int load(const char* name, uint32_t* index, gpushare_kernel_variants* variants) {
  check_kernels(gpushare_kernels_find(name, index));
  return gpushare_kernels_variants(*index, variants) != GPUSHARE_KERNELS_OK;
}

/* Under a name of its own: the block tasks of this problem take a time of their own. */
static gpushare_kernel* register_evictable(gpushare_runtime* runtime, const char* name,
                                           const gpushare_kernel_variants* variants) {
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  gpushare_simulation_record guess = GPUSHARE_SIMULATION_RECORD_INIT;
  gpushare_kernel* kernel = NULL;
  guess.block_task_ns = 30000; /* until the library has measured it */
  options.name = name;
  options.evictable = GPUSHARE_CHOICE_YES;
  options.simulation = &guess;
  options.original_function = variants->original_function;
  options.worker_function = variants->worker_function;
  options.slice_function = variants->slice_function;
  options.threads_per_block = (int32_t)variants->threads_per_block;
  options.registers_per_thread = (int32_t)variants->worker_registers;
  options.shared_memory_bytes =
      (int32_t)(variants->static_shared_bytes + variants->dynamic_shared_bytes);
  options.dynamic_shared_memory_bytes = (int32_t)variants->dynamic_shared_bytes;
  options.workers_per_sm_max = (int32_t)variants->workers_per_sm;
  check(gpushare_kernel_register(runtime, &options, &kernel));
  return kernel;
}

static gpushare_ticket submit_be(gpushare_queue* queue, gpushare_kernel* kernel,
                                 const gpushare_kernels_task* task) {
  gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
  gpushare_ticket ticket;
  options.kernel = kernel;
  options.block_tasks = task->block_tasks;
  options.grid_x = task->grid_x;
  options.grid_y = task->grid_y;
  options.grid_z = task->grid_z;
  options.arguments = task->arguments;
  options.arguments_size_bytes = task->arguments_size_bytes;
  check(gpushare_submit_be(queue, &options, &ticket));
  return ticket;
}

/* --- the LC graph ------------------------------------------------------------------------------
 */

typedef struct lc_graph {
  gpushare_kernel_variants gemm;
  gpushare_kernels_task task;
  device_pointer output;
} lc_graph;

/* Captures the original form: LC_NODES launches, one after the other. */
static int32_t capture_lc(void* user, void* stream, int32_t sm_count) {
  lc_graph* graph = user;
  void* arguments[1];
  int node;
  (void)sm_count; /* these kernels run on any number of SMs */
  arguments[0] = graph->task.arguments;
  for (node = 0; node < LC_NODES; ++node) {
    int code = cuda.launch(graph->gemm.original_function, (unsigned)graph->task.grid_x,
                           (unsigned)graph->task.grid_y, (unsigned)graph->task.grid_z,
                           graph->gemm.threads_per_block, 1, 1, graph->gemm.dynamic_shared_bytes,
                           stream, arguments, NULL);
    if (code != 0) return code;
  }
  return 0;
}

static gpushare_kernel* register_lc(gpushare_runtime* runtime, lc_graph* graph) {
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  gpushare_gemm_params params = GPUSHARE_GEMM_PARAMS_INIT;
  gpushare_kernel* kernel = NULL;
  uint32_t index;
  if (load("gemm_mma", &index, &graph->gemm) != 0) {
    fprintf(stderr, "%s\n", gpushare_kernels_last_error_message());
    exit(1);
  }
  graph->output = device_memory((size_t)LC_M * 1024 * sizeof(uint16_t));
  graph->task.struct_size = (uint32_t)sizeof(graph->task);
  params.a = as_pointer(gemm_matrix(4, LC_M * 1024));
  params.b = as_pointer(gemm_matrix(5, 1024 * 1024));
  params.c = as_pointer(graph->output);
  params.m = LC_M;
  params.n = 1024;
  params.k = 1024;
  check_kernels(gpushare_kernels_pack_gemm(index, &params, &graph->task));
  options.name = "example_lc_graph";
  options.kind = GPUSHARE_TASK_GRAPH;
  options.solo_ns = 100000; /* a guess, until the library has measured it */
  options.capture = capture_lc;
  options.capture_user = graph;
  check(gpushare_kernel_register(runtime, &options, &kernel));
  return kernel;
}

/* --- verification ------------------------------------------------------------------------------
 */

static int is_gemm_wrong(uint16_t bits, uint32_t seed_a, uint32_t seed_b, uint32_t row,
                         uint32_t column, uint32_t k) {
  double value = (double)from_bf16(bits), expected = 0;
  uint32_t i;
  for (i = 0; i < k; ++i) {
    expected +=
        (double)gemm_value(seed_a, row * k + i) * (double)gemm_value(seed_b, column * k + i);
  }
  return !(fabs(value - expected) <= fabs(expected) / 256); /* true for a NaN */
}

/* One element of each square of C, another one each round. */
static long verify_gemm(device_pointer output, const uint32_t seeds[2], const int sizes[3],
                        uint32_t round, long* checked) {
  uint32_t m = (uint32_t)sizes[0], n = (uint32_t)sizes[1], k = (uint32_t)sizes[2], row, column;
  uint16_t* host = host_memory((size_t)m * n * sizeof(uint16_t));
  long wrong = 0;
  check_cuda(cuda.download(host, output, (size_t)m * n * sizeof(uint16_t)), "Downloading C");
  for (row = 0; row < m; row += GEMM_TILE) {
    for (column = 0; column < n; column += GEMM_TILE, ++*checked) {
      uint32_t place = hash(round, row * n + column);
      uint32_t r = row + place % GEMM_TILE, c = column + place / GEMM_TILE % GEMM_TILE;
      wrong += is_gemm_wrong(host[(size_t)r * n + c], seeds[0], seeds[1], r, c, k);
    }
  }
  free(host);
  return wrong;
}

static int is_row_wrong(const float* values, uint32_t row) {
  double sum = 0;
  uint32_t i;
  for (i = 0; i < SOFTMAX_LENGTH; ++i) sum += exp((double)softmax_value(row * SOFTMAX_LENGTH + i));
  for (i = 0; i < SOFTMAX_LENGTH; ++i) {
    double expected = exp((double)softmax_value(row * SOFTMAX_LENGTH + i)) / sum;
    if (!(fabs((double)values[i] - expected) <= 1e-5 * expected)) return 1;
  }
  return 0;
}

static long verify_softmax(device_pointer output, uint32_t round, long* checked) {
  size_t bytes = (size_t)SOFTMAX_ROWS * SOFTMAX_LENGTH * sizeof(float);
  float* host = host_memory(bytes);
  long wrong = 0;
  uint32_t group;
  check_cuda(cuda.download(host, output, bytes), "Downloading the softmax");
  for (group = 0; group < SOFTMAX_ROWS; group += SOFTMAX_GROUP, ++*checked) {
    uint32_t row = group + round % SOFTMAX_GROUP;
    wrong += is_row_wrong(host + (size_t)row * SOFTMAX_LENGTH, row);
  }
  free(host);
  return wrong;
}

/* --- the run -----------------------------------------------------------------------------------
 */

typedef struct latencies {
  int64_t ns[QUERIES_MAX];
  int count;
} latencies;

static void serve_query(gpushare_runtime* runtime, gpushare_queue* queue, gpushare_kernel* kernel,
                        latencies* seen) {
  struct timespec gap = {0, QUERY_GAP_NS};
  gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
  gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
  gpushare_ticket ticket;
  options.kernel = kernel;
  check(gpushare_submit_lc(queue, &options, &ticket));
  check(gpushare_ticket_wait(runtime, ticket, GPUSHARE_NEVER));
  check(gpushare_ticket_record(runtime, ticket, &record));
  check(gpushare_ticket_release(runtime, ticket));
  if (record.verdict != GPUSHARE_VERDICT_OK) {
    fprintf(stderr, "A query ends with the verdict %s.\n", gpushare_verdict_name(record.verdict));
    exit(1);
  }
  if (seen->count < QUERIES_MAX) seen->ns[seen->count++] = record.complete_ns - record.submit_ns;
  nanosleep(&gap, NULL);
}

static int compare_ns(const void* a, const void* b) {
  int64_t left = *(const int64_t*)a, right = *(const int64_t*)b;
  return (left > right) - (left < right);
}

static void print_latencies(const char* where, latencies* seen) {
  int p50, p99;
  if (seen->count == 0) return;
  qsort(seen->ns, (size_t)seen->count, sizeof(seen->ns[0]), compare_ns);
  p50 = (seen->count - 1) / 2;
  p99 = (seen->count * 99 + 99) / 100 - 1; /* nearest rank */
  printf("LC queries %-10s %5d   p50 %6.1f us   p99 %6.1f us\n", where, seen->count,
         (double)seen->ns[p50] / 1000, (double)seen->ns[p99] / 1000);
}

static gpushare_app* make_app(gpushare_runtime* runtime, gpushare_app_class app_class,
                              const char* name, gpushare_queue** queue) {
  gpushare_app_options options = GPUSHARE_APP_OPTIONS_INIT;
  gpushare_app* app = NULL;
  options.app_class = app_class;
  options.name = name;
  if (app_class == GPUSHARE_CLASS_LATENCY_CRITICAL) options.target_ns = 1000000;
  check(gpushare_app_create(runtime, &options, &app));
  check(gpushare_queue_create(app, queue));
  return app;
}

/* A BE kernel with its problems: one task and one output each. */
typedef struct be_work {
  const char* name;
  gpushare_app* app;
  gpushare_queue* queue;
  gpushare_kernel* kernel;
  gpushare_kernels_task tasks[GEMM_OUTPUTS];
  device_pointer outputs[GEMM_OUTPUTS];
  int count;
  size_t output_bytes;
  long checked, wrong;
} be_work;

static void make_outputs(be_work* work, int count, size_t bytes) {
  int i;
  work->count = count;
  work->output_bytes = bytes;
  for (i = 0; i < count; ++i) {
    work->outputs[i] = device_memory(bytes);
    work->tasks[i].struct_size = (uint32_t)sizeof(work->tasks[i]);
  }
}

static void make_gemm(gpushare_runtime* runtime, be_work* work) {
  gpushare_kernel_variants variants;
  gpushare_gemm_params params = GPUSHARE_GEMM_PARAMS_INIT;
  uint32_t index;
  int i;
  work->name = "gemm_wgmma";
  if (load(work->name, &index, &variants) != 0) {
    work->name = "gemm_mma"; /* another GPU than sm_90 */
    if (load(work->name, &index, &variants) != 0) check_kernels(GPUSHARE_KERNELS_UNAVAILABLE);
  }
  make_outputs(work, GEMM_OUTPUTS, (size_t)GEMM_M * GEMM_N * sizeof(uint16_t));
  params.a = as_pointer(gemm_matrix(1, GEMM_M * GEMM_K));
  params.b = as_pointer(gemm_matrix(2, GEMM_N * GEMM_K));
  params.m = GEMM_M;
  params.n = GEMM_N;
  params.k = GEMM_K;
  for (i = 0; i < work->count; ++i) {
    params.c = as_pointer(work->outputs[i]);
    check_kernels(gpushare_kernels_pack_gemm(index, &params, &work->tasks[i]));
  }
  work->kernel = register_evictable(runtime, "example_gemm", &variants);
}

static void make_softmax(gpushare_runtime* runtime, be_work* work) {
  gpushare_kernel_variants variants;
  gpushare_softmax_params params = GPUSHARE_SOFTMAX_PARAMS_INIT;
  const size_t bytes = (size_t)SOFTMAX_ROWS * SOFTMAX_LENGTH * sizeof(float);
  float* host = host_memory(bytes);
  device_pointer input = device_memory(bytes);
  uint32_t index, i;
  int output;
  for (i = 0; i < (uint32_t)SOFTMAX_ROWS * SOFTMAX_LENGTH; ++i) host[i] = softmax_value(i);
  check_cuda(cuda.upload(input, host, bytes), "Uploading the rows");
  free(host);
  work->name = "softmax";
  if (load(work->name, &index, &variants) != 0) check_kernels(GPUSHARE_KERNELS_UNAVAILABLE);
  make_outputs(work, SOFTMAX_OUTPUTS, bytes);
  params.input = as_pointer(input);
  params.row_count = SOFTMAX_ROWS;
  params.row_length = SOFTMAX_LENGTH;
  for (output = 0; output < work->count; ++output) {
    params.output = as_pointer(work->outputs[output]);
    check_kernels(gpushare_kernels_pack_softmax(&params, &work->tasks[output]));
  }
  work->kernel = register_evictable(runtime, "example_softmax", &variants);
}

/* Outputs become NaN, so that a block task that does not run shows. */
static void clear_outputs(be_work* work) {
  int i;
  for (i = 0; i < work->count; ++i) {
    check_cuda(cuda.fill(work->outputs[i], 0xFF, work->output_bytes), "Clearing an output");
  }
  check_cuda(cuda.synchronize(NULL),
             "Clearing the outputs"); /* the library's streams do not wait */
}

static int is_complete(gpushare_runtime* runtime, const gpushare_ticket* tickets, int count) {
  int i;
  for (i = 0; i < count; ++i) {
    gpushare_bool complete = 0;
    check(gpushare_ticket_poll(runtime, tickets[i], &complete));
    if (!complete) return 0;
  }
  return 1;
}

/* All BE tasks once, with queries beside them, then their results. */
static void run_round(gpushare_runtime* runtime, gpushare_queue* lc, gpushare_kernel* graph,
                      be_work* gemm, be_work* softmax, uint32_t round, latencies* beside) {
  static const uint32_t seeds[2] = {1, 2};
  static const int sizes[3] = {GEMM_M, GEMM_N, GEMM_K};
  gpushare_ticket tickets[GEMM_OUTPUTS + SOFTMAX_OUTPUTS];
  int count = 0, i;
  clear_outputs(gemm);
  clear_outputs(softmax);
  for (i = 0; i < gemm->count; ++i) {
    tickets[count++] = submit_be(gemm->queue, gemm->kernel, &gemm->tasks[i]);
  }
  for (i = 0; i < softmax->count; ++i) {
    tickets[count++] = submit_be(softmax->queue, softmax->kernel, &softmax->tasks[i]);
  }
  while (!is_complete(runtime, tickets, count)) serve_query(runtime, lc, graph, beside);
  for (i = 0; i < count; ++i) check(gpushare_ticket_release(runtime, tickets[i]));
  for (i = 0; i < gemm->count; ++i) {
    gemm->wrong += verify_gemm(gemm->outputs[i], seeds, sizes, round, &gemm->checked);
  }
  for (i = 0; i < softmax->count; ++i) {
    softmax->wrong += verify_softmax(softmax->outputs[i], round, &softmax->checked);
  }
}

static void print_be(const be_work* work, int* failures) {
  gpushare_app_stats stats = GPUSHARE_APP_STATS_INIT;
  check(gpushare_app_stats_get(work->app, &stats));
  printf("%-12s %6lld %12lld %10lld %9ld %6ld\n", work->name, (long long)stats.completed,
         (long long)stats.block_tasks, (long long)stats.evictions, work->checked, work->wrong);
  if (stats.failed != 0 || stats.completed != (int64_t)ROUNDS * work->count || work->wrong != 0) {
    ++*failures;
  }
}

int main(void) {
  static latencies alone, beside;
  static be_work gemm, softmax;
  static lc_graph graph;
  static const uint32_t lc_seeds[2] = {4, 5};
  static const int lc_sizes[3] = {LC_M, 1024, 1024};
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  gpushare_runtime* runtime = NULL;
  gpushare_queue* lc = NULL;
  gpushare_app* service;
  gpushare_kernel* query;
  long lc_checked = 0, lc_wrong;
  int failures = 0, i;
  list_kernels();
  if (open_cuda_driver(&cuda) != 0) {
    printf("There is no GPU here: the rest is skipped.\n");
    return 0;
  }
  options.device = "cuda";
  check(gpushare_runtime_create(&options, &runtime));
  service = make_app(runtime, GPUSHARE_CLASS_LATENCY_CRITICAL, "service", &lc);
  gemm.app = make_app(runtime, GPUSHARE_CLASS_BEST_EFFORT, "gemm", &gemm.queue);
  softmax.app = make_app(runtime, GPUSHARE_CLASS_BEST_EFFORT, "softmax", &softmax.queue);
  query = register_lc(runtime, &graph);
  make_gemm(runtime, &gemm);
  make_softmax(runtime, &softmax);

  for (i = 0; i < QUERIES_ALONE; ++i) serve_query(runtime, lc, query, &alone);
  for (i = 0; i < ROUNDS; ++i) {
    run_round(runtime, lc, query, &gemm, &softmax, (uint32_t)i, &beside);
  }
  lc_wrong = verify_gemm(graph.output, lc_seeds, lc_sizes, 0, &lc_checked);

  printf("%-12s %6s %12s %10s %9s %6s\n", "BE kernel", "tasks", "block tasks", "evictions",
         "verified", "wrong");
  print_be(&gemm, &failures);
  print_be(&softmax, &failures);
  printf("\n");
  print_latencies("alone", &alone);
  print_latencies("beside BE", &beside);
  printf("LC results: %ld verified, %ld wrong\n", lc_checked, lc_wrong);
  failures += lc_wrong != 0;

  check(gpushare_runtime_shutdown(runtime, GPUSHARE_NEVER));
  check(gpushare_app_release(service));
  check(gpushare_runtime_release(runtime)); /* what is left goes with the process */
  return failures == 0 ? 0 : 1;
}

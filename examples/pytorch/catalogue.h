// The plain C interface of libgpushare_catalogue. With it and gpushare's C ABI, a program in
// another language can measure LC work next to a best-effort kernel.
//
// Parts: the layouts of its own structs as the C compiler has them; an open-loop load driver;
// and, in a build with CUDA, workloads of the kernel catalogue and bare launches of a graph.
//
// Functions return 0, or -1 with a sentence in gpushare_example_error() of the calling thread. None
// prints or throws. Threads: one at a time for each object.

#ifndef GPUSHARE_EXAMPLES_PYTORCH_CATALOGUE_H_
#define GPUSHARE_EXAMPLES_PYTORCH_CATALOGUE_H_

#include <gpushare/gpushare.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// "" before the first failure of this thread; valid until its next one.
GPUSHARE_API const char* gpushare_example_error(void);

// --- layouts -------------------------------------------------------------------------------------

typedef struct gpushare_example_field {
  const char* owner;  // the struct
  const char* name;   // null: the row is the struct itself
  uint64_t offset;
  uint64_t size;
} gpushare_example_field;

// Row `index`, from 0; null after the last.
GPUSHARE_API const gpushare_example_field* gpushare_example_layout(uint32_t index);

// --- the load driver -----------------------------------------------------------------------------

typedef struct gpushare_example_load_options {
  gpushare_runtime* runtime;
  gpushare_queue* lc_queue;  // null: no LC app
  gpushare_queue* be_queue;  // null: no BE app
  const gpushare_task_options* lc_task;
  const gpushare_task_options* be_task;
  const int64_t* arrivals_ns;  // query_count of them, from the window's start, ascending
  int64_t* latencies_ns;       // out: query_count latencies, from the intended arrivals
  int64_t span_ns;             // length of the window; with LC, time to the last arrival
  int32_t query_count;
  int32_t warm_up_queries;  // one after another, before the window
  int32_t be_depth;         // tasks kept pending
  int32_t virtual_time;     // not 0: the runtime is driven by this call (GPUSHARE_DRIVE_POLL)
} gpushare_example_load_options;

enum { GPUSHARE_EXAMPLE_PLACES = 64, GPUSHARE_EXAMPLE_REASONS = 128 };

typedef struct gpushare_example_load_result {
  int64_t span_ns;
  // Executed in the window; a graph is one. A task counts with the share of its time in the window.
  double be_block_tasks;
  int64_t be_tasks;  // completed; this and the counts below include tasks outside the window
  int64_t be_evictions;
  int64_t lc_queries;
  int64_t wrong_verdicts;                      // tasks that did not end with GPUSHARE_VERDICT_OK
  int64_t lc_places[GPUSHARE_EXAMPLE_PLACES];  // by the place of the last launch
  int64_t be_places[GPUSHARE_EXAMPLE_PLACES];
  int64_t lc_reasons[GPUSHARE_EXAMPLE_REASONS];  // by the reason of the last launch
  int64_t be_reasons[GPUSHARE_EXAMPLE_REASONS];
  int64_t be_holds[GPUSHARE_EXAMPLE_REASONS];  // by the last reason to wait
} gpushare_example_load_result;

typedef struct gpushare_example_load gpushare_example_load;

// Copies the options; the memory that they point to must live as long as the object. The object
// must live until the runtime has no task of it: until run returned 0, or the runtime is released.
GPUSHARE_API int32_t gpushare_example_load_new(const gpushare_example_load_options* options,
                                               gpushare_example_load** out_load);

// Runs one window, once for each object: keeps BE tasks pending, submits queries at their arrivals,
// then drains.
GPUSHARE_API int32_t gpushare_example_load_run(gpushare_example_load* load,
                                               gpushare_example_load_result* out_result);

GPUSHARE_API void gpushare_example_load_free(gpushare_example_load* load);

// --- in a build with CUDA only: workloads --------------------------------------------------------

typedef struct gpushare_example_workload gpushare_example_workload;

// A kernel of the catalogue with its own buffers: `block_tasks` block tasks, each `block_task_us`
// long at full occupancy on the reference GPU. The device's primary context must be current.
GPUSHARE_API int32_t gpushare_example_workload_new(const char* kernel, double block_task_us,
                                                   uint32_t block_tasks, int32_t sm_count,
                                                   gpushare_example_workload** out_workload);

// Fills the kernel's kind, functions, launch sizes and `evictable`, and the task's block tasks,
// grid and arguments. The caller sets the name. The arguments live as long as the workload.
GPUSHARE_API int32_t gpushare_example_workload_fill(gpushare_example_workload* workload,
                                                    gpushare_kernel_options* kernel,
                                                    gpushare_task_options* task);

// Overwrites the results, so that Verify sees only new ones.
GPUSHARE_API int32_t gpushare_example_workload_clear(gpushare_example_workload* workload);

// Compares results with the reference for about budget_s seconds of one CPU core.
GPUSHARE_API int32_t gpushare_example_workload_verify(gpushare_example_workload* workload,
                                                      double budget_s, int64_t* out_checked,
                                                      int64_t* out_wrong);

GPUSHARE_API void gpushare_example_workload_free(gpushare_example_workload* workload);

// --- in a build with CUDA only: bare launches ----------------------------------------------------

typedef struct gpushare_example_graph gpushare_example_graph;

// Instantiates a cudaGraph_t, which stays the caller's, for launches without gpushare.
GPUSHARE_API int32_t gpushare_example_graph_new(void* graph, gpushare_example_graph** out_graph);

// Runs the load driver's arrivals as bare launches on the graph's own stream.
GPUSHARE_API int32_t gpushare_example_graph_run(gpushare_example_graph* graph,
                                                const int64_t* arrivals_ns, int64_t* latencies_ns,
                                                int32_t query_count, int64_t* out_span_ns);

GPUSHARE_API void gpushare_example_graph_free(gpushare_example_graph* graph);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // GPUSHARE_EXAMPLES_PYTORCH_CATALOGUE_H_

// The layouts of this library's structs as the C compiler sees them, for catalogue.py to compare
// its own with. Threads: any; the table is constant.

#include <stddef.h>

#include "examples/pytorch/catalogue.h"

#define SIZE(type) \
  { #type, 0, 0, sizeof(type) }
#define FIELD(type, field) \
  { #type, #field, offsetof(type, field), sizeof(((type*)0)->field) }

// NOLINTBEGIN(bugprone-sizeof-expression): the size of a pointer is what is asked for.
static const gpushare_example_field kLayout[] = {
    SIZE(gpushare_example_load_options),
    FIELD(gpushare_example_load_options, runtime),
    FIELD(gpushare_example_load_options, lc_queue),
    FIELD(gpushare_example_load_options, be_queue),
    FIELD(gpushare_example_load_options, lc_task),
    FIELD(gpushare_example_load_options, be_task),
    FIELD(gpushare_example_load_options, arrivals_ns),
    FIELD(gpushare_example_load_options, latencies_ns),
    FIELD(gpushare_example_load_options, span_ns),
    FIELD(gpushare_example_load_options, query_count),
    FIELD(gpushare_example_load_options, warm_up_queries),
    FIELD(gpushare_example_load_options, be_depth),
    FIELD(gpushare_example_load_options, virtual_time),
    SIZE(gpushare_example_load_result),
    FIELD(gpushare_example_load_result, span_ns),
    FIELD(gpushare_example_load_result, be_block_tasks),
    FIELD(gpushare_example_load_result, be_tasks),
    FIELD(gpushare_example_load_result, be_evictions),
    FIELD(gpushare_example_load_result, lc_queries),
    FIELD(gpushare_example_load_result, wrong_verdicts),
    FIELD(gpushare_example_load_result, lc_places),
    FIELD(gpushare_example_load_result, be_places),
    FIELD(gpushare_example_load_result, lc_reasons),
    FIELD(gpushare_example_load_result, be_reasons),
    FIELD(gpushare_example_load_result, be_holds),
};
// NOLINTEND(bugprone-sizeof-expression)

const gpushare_example_field* gpushare_example_layout(uint32_t index) {
  return index < sizeof(kLayout) / sizeof(kLayout[0]) ? &kLayout[index] : NULL;
}

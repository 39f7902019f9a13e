/* The layout of version 0 of the ABI: sizes, offsets and enum values, frozen by static asserts.
 *
 * Compiling it is the test; main only says so. A line of it changes only together with a new entry
 * in bindings/c/CHANGELOG.md. Structs without implicit padding: the headers gate compiles with
 * -Wpadded.
 */
#include <gpushare/gpushare.h>
#include <gpushare/gpushare_policy.h>
#include <stddef.h>
#include <stdio.h>

#define GPUSHARE_SIZE(type, bytes) \
  _Static_assert(sizeof(type) == (bytes), #type " has another size than its frozen one")
#define GPUSHARE_AT_BYTE(type, field, bytes)       \
  _Static_assert(offsetof(type, field) == (bytes), \
                 #type "." #field " lies at another offset than its frozen one")
#define GPUSHARE_VALUE(name, value) \
  _Static_assert((name) == (value), #name " has another value than its frozen one")

_Static_assert(sizeof(void*) == 8, "the ABI is for 64-bit platforms");

GPUSHARE_SIZE(gpushare_ticket, 8);
GPUSHARE_AT_BYTE(gpushare_ticket, value, 0);

GPUSHARE_SIZE(gpushare_query, 8);
GPUSHARE_AT_BYTE(gpushare_query, value, 0);

GPUSHARE_SIZE(gpushare_runtime_options, 112);
GPUSHARE_AT_BYTE(gpushare_runtime_options, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_runtime_options, drive, 4);
GPUSHARE_AT_BYTE(gpushare_runtime_options, device, 8);
GPUSHARE_AT_BYTE(gpushare_runtime_options, policy, 16);
GPUSHARE_AT_BYTE(gpushare_runtime_options, profile_path, 24);
GPUSHARE_AT_BYTE(gpushare_runtime_options, seed, 32);
GPUSHARE_AT_BYTE(gpushare_runtime_options, sim_tier, 40);
GPUSHARE_AT_BYTE(gpushare_runtime_options, sim_faults, 48);
GPUSHARE_AT_BYTE(gpushare_runtime_options, device_ordinal, 56);
GPUSHARE_AT_BYTE(gpushare_runtime_options, splits_max, 60);
GPUSHARE_AT_BYTE(gpushare_runtime_options, hang_floor_ns, 64);
GPUSHARE_AT_BYTE(gpushare_runtime_options, hang_factor, 72);
GPUSHARE_AT_BYTE(gpushare_runtime_options, be_return_hysteresis_ns, 80);
GPUSHARE_AT_BYTE(gpushare_runtime_options, shutdown_timeout_ns, 88);
GPUSHARE_AT_BYTE(gpushare_runtime_options, log, 96);
GPUSHARE_AT_BYTE(gpushare_runtime_options, log_user, 104);

GPUSHARE_SIZE(gpushare_app_options, 64);
GPUSHARE_AT_BYTE(gpushare_app_options, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_app_options, app_class, 4);
GPUSHARE_AT_BYTE(gpushare_app_options, name, 8);
GPUSHARE_AT_BYTE(gpushare_app_options, target_ns, 16);
GPUSHARE_AT_BYTE(gpushare_app_options, p99_bound, 24);
GPUSHARE_AT_BYTE(gpushare_app_options, p99_alone_ns, 32);
GPUSHARE_AT_BYTE(gpushare_app_options, solo_ns, 40);
GPUSHARE_AT_BYTE(gpushare_app_options, weight, 48);
GPUSHARE_AT_BYTE(gpushare_app_options, drop_late, 56);
GPUSHARE_AT_BYTE(gpushare_app_options, tasks_max, 60);

GPUSHARE_SIZE(gpushare_reservation_options, 16);
GPUSHARE_AT_BYTE(gpushare_reservation_options, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_reservation_options, capsms, 4);
GPUSHARE_AT_BYTE(gpushare_reservation_options, packed, 8);
GPUSHARE_AT_BYTE(gpushare_reservation_options, reserved, 12);

GPUSHARE_SIZE(gpushare_speed_point, 16);
GPUSHARE_AT_BYTE(gpushare_speed_point, sms, 0);
GPUSHARE_AT_BYTE(gpushare_speed_point, reserved, 4);
GPUSHARE_AT_BYTE(gpushare_speed_point, speed, 8);

GPUSHARE_SIZE(gpushare_resource_demand, 40);
GPUSHARE_AT_BYTE(gpushare_resource_demand, issue, 0);
GPUSHARE_AT_BYTE(gpushare_resource_demand, tensor, 8);
GPUSHARE_AT_BYTE(gpushare_resource_demand, special, 16);
GPUSHARE_AT_BYTE(gpushare_resource_demand, dram, 24);
GPUSHARE_AT_BYTE(gpushare_resource_demand, l2, 32);

GPUSHARE_SIZE(gpushare_graph_node, 64);
GPUSHARE_AT_BYTE(gpushare_graph_node, duration_ns, 0);
GPUSHARE_AT_BYTE(gpushare_graph_node, blocks, 8);
GPUSHARE_AT_BYTE(gpushare_graph_node, repeat, 12);
GPUSHARE_AT_BYTE(gpushare_graph_node, whole_sm, 16);
GPUSHARE_AT_BYTE(gpushare_graph_node, reserved, 20);
GPUSHARE_AT_BYTE(gpushare_graph_node, demand, 24);

GPUSHARE_SIZE(gpushare_simulation_record, 120);
GPUSHARE_AT_BYTE(gpushare_simulation_record, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_simulation_record, speed_count, 4);
GPUSHARE_AT_BYTE(gpushare_simulation_record, block_task_ns, 8);
GPUSHARE_AT_BYTE(gpushare_simulation_record, block_task_spread, 16);
GPUSHARE_AT_BYTE(gpushare_simulation_record, worker_overhead, 24);
GPUSHARE_AT_BYTE(gpushare_simulation_record, memory_parallelism, 32);
GPUSHARE_AT_BYTE(gpushare_simulation_record, saturating_occupancy, 40);
GPUSHARE_AT_BYTE(gpushare_simulation_record, demand, 48);
GPUSHARE_AT_BYTE(gpushare_simulation_record, speed, 88);
GPUSHARE_AT_BYTE(gpushare_simulation_record, nodes, 96);
GPUSHARE_AT_BYTE(gpushare_simulation_record, node_count, 104);
GPUSHARE_AT_BYTE(gpushare_simulation_record, reserved, 108);
GPUSHARE_AT_BYTE(gpushare_simulation_record, node_gap_ns, 112);

GPUSHARE_SIZE(gpushare_kernel_options, 96);
GPUSHARE_AT_BYTE(gpushare_kernel_options, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_kernel_options, kind, 4);
GPUSHARE_AT_BYTE(gpushare_kernel_options, name, 8);
GPUSHARE_AT_BYTE(gpushare_kernel_options, threads_per_block, 16);
GPUSHARE_AT_BYTE(gpushare_kernel_options, registers_per_thread, 20);
GPUSHARE_AT_BYTE(gpushare_kernel_options, shared_memory_bytes, 24);
GPUSHARE_AT_BYTE(gpushare_kernel_options, workers_per_sm_max, 28);
GPUSHARE_AT_BYTE(gpushare_kernel_options, evictable, 32);
GPUSHARE_AT_BYTE(gpushare_kernel_options, confinable, 36);
GPUSHARE_AT_BYTE(gpushare_kernel_options, roomy, 40);
GPUSHARE_AT_BYTE(gpushare_kernel_options, reserved, 44);
GPUSHARE_AT_BYTE(gpushare_kernel_options, yield_interval_ns, 48);
GPUSHARE_AT_BYTE(gpushare_kernel_options, solo_ns, 56);
GPUSHARE_AT_BYTE(gpushare_kernel_options, original_function, 64);
GPUSHARE_AT_BYTE(gpushare_kernel_options, worker_function, 72);
GPUSHARE_AT_BYTE(gpushare_kernel_options, graph, 80);
GPUSHARE_AT_BYTE(gpushare_kernel_options, simulation, 88);

GPUSHARE_SIZE(gpushare_kernel_info, 104);
GPUSHARE_AT_BYTE(gpushare_kernel_info, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_kernel_info, kind, 4);
GPUSHARE_AT_BYTE(gpushare_kernel_info, threads_per_block, 8);
GPUSHARE_AT_BYTE(gpushare_kernel_info, registers_per_thread, 12);
GPUSHARE_AT_BYTE(gpushare_kernel_info, shared_memory_bytes, 16);
GPUSHARE_AT_BYTE(gpushare_kernel_info, workers_per_sm_max, 20);
GPUSHARE_AT_BYTE(gpushare_kernel_info, evictable, 24);
GPUSHARE_AT_BYTE(gpushare_kernel_info, confinable, 28);
GPUSHARE_AT_BYTE(gpushare_kernel_info, roomy, 32);
GPUSHARE_AT_BYTE(gpushare_kernel_info, node_count, 36);
GPUSHARE_AT_BYTE(gpushare_kernel_info, block_task_ns, 40);
GPUSHARE_AT_BYTE(gpushare_kernel_info, yield_interval_ns, 48);
GPUSHARE_AT_BYTE(gpushare_kernel_info, solo_ns, 56);
GPUSHARE_AT_BYTE(gpushare_kernel_info, demand, 64);

GPUSHARE_SIZE(gpushare_fused_kernel_options, 64);
GPUSHARE_AT_BYTE(gpushare_fused_kernel_options, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_fused_kernel_options, tensor_blocks, 4);
GPUSHARE_AT_BYTE(gpushare_fused_kernel_options, cuda_blocks, 8);
GPUSHARE_AT_BYTE(gpushare_fused_kernel_options, reserved, 12);
GPUSHARE_AT_BYTE(gpushare_fused_kernel_options, name, 16);
GPUSHARE_AT_BYTE(gpushare_fused_kernel_options, tensor_part, 24);
GPUSHARE_AT_BYTE(gpushare_fused_kernel_options, cuda_part, 32);
GPUSHARE_AT_BYTE(gpushare_fused_kernel_options, opportune_load_ratio, 40);
GPUSHARE_AT_BYTE(gpushare_fused_kernel_options, opportune_duration_ratio, 48);
GPUSHARE_AT_BYTE(gpushare_fused_kernel_options, function, 56);

GPUSHARE_SIZE(gpushare_completion_record, 160);
GPUSHARE_AT_BYTE(gpushare_completion_record, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_completion_record, verdict, 4);
GPUSHARE_AT_BYTE(gpushare_completion_record, ticket, 8);
GPUSHARE_AT_BYTE(gpushare_completion_record, query, 16);
GPUSHARE_AT_BYTE(gpushare_completion_record, app_id, 24);
GPUSHARE_AT_BYTE(gpushare_completion_record, queue_id, 28);
GPUSHARE_AT_BYTE(gpushare_completion_record, kernel_id, 32);
GPUSHARE_AT_BYTE(gpushare_completion_record, kind, 36);
GPUSHARE_AT_BYTE(gpushare_completion_record, submit_ns, 40);
GPUSHARE_AT_BYTE(gpushare_completion_record, admit_ns, 48);
GPUSHARE_AT_BYTE(gpushare_completion_record, launch_ns, 56);
GPUSHARE_AT_BYTE(gpushare_completion_record, start_ns, 64);
GPUSHARE_AT_BYTE(gpushare_completion_record, end_ns, 72);
GPUSHARE_AT_BYTE(gpushare_completion_record, complete_ns, 80);
GPUSHARE_AT_BYTE(gpushare_completion_record, predicted_ns, 88);
GPUSHARE_AT_BYTE(gpushare_completion_record, predicted_error_ns, 96);
GPUSHARE_AT_BYTE(gpushare_completion_record, measured_ns, 104);
GPUSHARE_AT_BYTE(gpushare_completion_record, evicted_ns, 112);
GPUSHARE_AT_BYTE(gpushare_completion_record, block_tasks, 120);
GPUSHARE_AT_BYTE(gpushare_completion_record, evictions, 128);
GPUSHARE_AT_BYTE(gpushare_completion_record, launches, 132);
GPUSHARE_AT_BYTE(gpushare_completion_record, form, 136);
GPUSHARE_AT_BYTE(gpushare_completion_record, place, 140);
GPUSHARE_AT_BYTE(gpushare_completion_record, launch_reason, 144);
GPUSHARE_AT_BYTE(gpushare_completion_record, hold_reason, 148);
GPUSHARE_AT_BYTE(gpushare_completion_record, beside_kernel_id, 152);
GPUSHARE_AT_BYTE(gpushare_completion_record, error_code, 156);

GPUSHARE_SIZE(gpushare_task_options, 168);
GPUSHARE_AT_BYTE(gpushare_task_options, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_task_options, kind, 4);
GPUSHARE_AT_BYTE(gpushare_task_options, kernel, 8);
GPUSHARE_AT_BYTE(gpushare_task_options, block_tasks, 16);
GPUSHARE_AT_BYTE(gpushare_task_options, arguments, 24);
GPUSHARE_AT_BYTE(gpushare_task_options, arguments_size_bytes, 32);
GPUSHARE_AT_BYTE(gpushare_task_options, query, 40);
GPUSHARE_AT_BYTE(gpushare_task_options, arrival_ns, 48);
GPUSHARE_AT_BYTE(gpushare_task_options, declared_ns, 56);
GPUSHARE_AT_BYTE(gpushare_task_options, copy_destination, 64);
GPUSHARE_AT_BYTE(gpushare_task_options, copy_source, 72);
GPUSHARE_AT_BYTE(gpushare_task_options, copy_size_bytes, 80);
GPUSHARE_AT_BYTE(gpushare_task_options, copy_direction, 88);
GPUSHARE_AT_BYTE(gpushare_task_options, copy_pageable, 92);
GPUSHARE_AT_BYTE(gpushare_task_options, wait_tickets, 96);
GPUSHARE_AT_BYTE(gpushare_task_options, wait_events, 104);
GPUSHARE_AT_BYTE(gpushare_task_options, wait_ticket_count, 112);
GPUSHARE_AT_BYTE(gpushare_task_options, wait_event_count, 116);
GPUSHARE_AT_BYTE(gpushare_task_options, signal_event, 120);
GPUSHARE_AT_BYTE(gpushare_task_options, detached, 128);
GPUSHARE_AT_BYTE(gpushare_task_options, reserved, 132);
GPUSHARE_AT_BYTE(gpushare_task_options, enqueue, 136);
GPUSHARE_AT_BYTE(gpushare_task_options, enqueue_user, 144);
GPUSHARE_AT_BYTE(gpushare_task_options, callback, 152);
GPUSHARE_AT_BYTE(gpushare_task_options, callback_user, 160);

GPUSHARE_SIZE(gpushare_region_options, 16);
GPUSHARE_AT_BYTE(gpushare_region_options, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_region_options, reserved, 4);
GPUSHARE_AT_BYTE(gpushare_region_options, bound_ns, 8);

GPUSHARE_SIZE(gpushare_device_info, 112);
GPUSHARE_AT_BYTE(gpushare_device_info, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_device_info, simulated, 4);
GPUSHARE_AT_BYTE(gpushare_device_info, name, 8);
GPUSHARE_AT_BYTE(gpushare_device_info, profile, 16);
GPUSHARE_AT_BYTE(gpushare_device_info, policy, 24);
GPUSHARE_AT_BYTE(gpushare_device_info, virtual_time, 32);
GPUSHARE_AT_BYTE(gpushare_device_info, partitions, 36);
GPUSHARE_AT_BYTE(gpushare_device_info, eviction, 40);
GPUSHARE_AT_BYTE(gpushare_device_info, timestamps, 44);
GPUSHARE_AT_BYTE(gpushare_device_info, sm_count, 48);
GPUSHARE_AT_BYTE(gpushare_device_info, sm_granularity, 52);
GPUSHARE_AT_BYTE(gpushare_device_info, lanes_max, 56);
GPUSHARE_AT_BYTE(gpushare_device_info, places_max, 60);
GPUSHARE_AT_BYTE(gpushare_device_info, threads_per_sm, 64);
GPUSHARE_AT_BYTE(gpushare_device_info, registers_per_sm, 68);
GPUSHARE_AT_BYTE(gpushare_device_info, shared_memory_per_sm_bytes, 72);
GPUSHARE_AT_BYTE(gpushare_device_info, blocks_per_sm, 76);
GPUSHARE_AT_BYTE(gpushare_device_info, launch_latency_ns, 80);
GPUSHARE_AT_BYTE(gpushare_device_info, completion_latency_ns, 88);
GPUSHARE_AT_BYTE(gpushare_device_info, eviction_write_latency_ns, 96);
GPUSHARE_AT_BYTE(gpushare_device_info, pinned_bytes_per_ns, 104);

GPUSHARE_SIZE(gpushare_latency_summary, 32);
GPUSHARE_AT_BYTE(gpushare_latency_summary, count, 0);
GPUSHARE_AT_BYTE(gpushare_latency_summary, p50_ns, 8);
GPUSHARE_AT_BYTE(gpushare_latency_summary, p99_ns, 16);
GPUSHARE_AT_BYTE(gpushare_latency_summary, max_ns, 24);

GPUSHARE_SIZE(gpushare_runtime_stats, 168);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, simulated, 4);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, ticks, 8);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, plans, 16);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, launches, 24);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, fast_path_launches, 32);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, evictions, 40);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, evictions_blocked, 48);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, hung, 56);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, busy_sm_ns, 64);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, tasks_pending, 72);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, prediction_samples, 80);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, prediction_error, 88);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, eviction_latency, 96);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, plan_time, 128);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, device_lost, 160);
GPUSHARE_AT_BYTE(gpushare_runtime_stats, app_count, 164);

GPUSHARE_SIZE(gpushare_app_stats, 128);
GPUSHARE_AT_BYTE(gpushare_app_stats, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_app_stats, app_class, 4);
GPUSHARE_AT_BYTE(gpushare_app_stats, submitted, 8);
GPUSHARE_AT_BYTE(gpushare_app_stats, completed, 16);
GPUSHARE_AT_BYTE(gpushare_app_stats, failed, 24);
GPUSHARE_AT_BYTE(gpushare_app_stats, dropped, 32);
GPUSHARE_AT_BYTE(gpushare_app_stats, cancelled, 40);
GPUSHARE_AT_BYTE(gpushare_app_stats, rejected, 48);
GPUSHARE_AT_BYTE(gpushare_app_stats, evictions, 56);
GPUSHARE_AT_BYTE(gpushare_app_stats, queue_depth, 64);
GPUSHARE_AT_BYTE(gpushare_app_stats, device_ns, 72);
GPUSHARE_AT_BYTE(gpushare_app_stats, work_ns, 80);
GPUSHARE_AT_BYTE(gpushare_app_stats, block_tasks, 88);
GPUSHARE_AT_BYTE(gpushare_app_stats, latency, 96);

GPUSHARE_SIZE(gpushare_trace_options, 32);
GPUSHARE_AT_BYTE(gpushare_trace_options, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_trace_options, reserved, 4);
GPUSHARE_AT_BYTE(gpushare_trace_options, perfetto_path, 8);
GPUSHARE_AT_BYTE(gpushare_trace_options, event_log_path, 16);
GPUSHARE_AT_BYTE(gpushare_trace_options, records_max, 24);

GPUSHARE_SIZE(gpushare_trace_summary, 32);
GPUSHARE_AT_BYTE(gpushare_trace_summary, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_trace_summary, reserved, 4);
GPUSHARE_AT_BYTE(gpushare_trace_summary, records, 8);
GPUSHARE_AT_BYTE(gpushare_trace_summary, dropped, 16);
GPUSHARE_AT_BYTE(gpushare_trace_summary, decision_digest, 24);

GPUSHARE_SIZE(gpushare_event, 80);
GPUSHARE_AT_BYTE(gpushare_event, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_event, type, 4);
GPUSHARE_AT_BYTE(gpushare_event, time_ns, 8);
GPUSHARE_AT_BYTE(gpushare_event, id, 16);
GPUSHARE_AT_BYTE(gpushare_event, a, 24);
GPUSHARE_AT_BYTE(gpushare_event, b, 32);
GPUSHARE_AT_BYTE(gpushare_event, c, 40);
GPUSHARE_AT_BYTE(gpushare_event, d, 48);
GPUSHARE_AT_BYTE(gpushare_event, app_id, 56);
GPUSHARE_AT_BYTE(gpushare_event, kernel_id, 60);
GPUSHARE_AT_BYTE(gpushare_event, place, 64);
GPUSHARE_AT_BYTE(gpushare_event, reason, 68);
GPUSHARE_AT_BYTE(gpushare_event, detail, 72);
GPUSHARE_AT_BYTE(gpushare_event, app_class, 76);

GPUSHARE_SIZE(gpushare_place_view, 16);
GPUSHARE_AT_BYTE(gpushare_place_view, sms, 0);
GPUSHARE_AT_BYTE(gpushare_place_view, reserved, 4);
GPUSHARE_AT_BYTE(gpushare_place_view, overlaps, 8);

GPUSHARE_SIZE(gpushare_split_view, 16);
GPUSHARE_AT_BYTE(gpushare_split_view, lc_place, 0);
GPUSHARE_AT_BYTE(gpushare_split_view, be_place, 4);
GPUSHARE_AT_BYTE(gpushare_split_view, lc_sms, 8);
GPUSHARE_AT_BYTE(gpushare_split_view, be_sms, 12);

GPUSHARE_SIZE(gpushare_copy_state, 16);
GPUSHARE_AT_BYTE(gpushare_copy_state, be_active, 0);
GPUSHARE_AT_BYTE(gpushare_copy_state, lc_active, 4);
GPUSHARE_AT_BYTE(gpushare_copy_state, be_limit, 8);
GPUSHARE_AT_BYTE(gpushare_copy_state, reserved, 12);

GPUSHARE_SIZE(gpushare_lc_app_view, 80);
GPUSHARE_AT_BYTE(gpushare_lc_app_view, app_id, 0);
GPUSHARE_AT_BYTE(gpushare_lc_app_view, reserved_capsms, 4);
GPUSHARE_AT_BYTE(gpushare_lc_app_view, target_ns, 8);
GPUSHARE_AT_BYTE(gpushare_lc_app_view, p99_bound, 16);
GPUSHARE_AT_BYTE(gpushare_lc_app_view, p99_alone_ns, 24);
GPUSHARE_AT_BYTE(gpushare_lc_app_view, solo_ns, 32);
GPUSHARE_AT_BYTE(gpushare_lc_app_view, load, 40);
GPUSHARE_AT_BYTE(gpushare_lc_app_view, blocking_budget_ns, 48);
GPUSHARE_AT_BYTE(gpushare_lc_app_view, active_queries, 56);
GPUSHARE_AT_BYTE(gpushare_lc_app_view, tasks_in_flight, 60);
GPUSHARE_AT_BYTE(gpushare_lc_app_view, idle_since_ns, 64);
GPUSHARE_AT_BYTE(gpushare_lc_app_view, main_kernel_id, 72);
GPUSHARE_AT_BYTE(gpushare_lc_app_view, reserved, 76);

GPUSHARE_SIZE(gpushare_be_app_view, 40);
GPUSHARE_AT_BYTE(gpushare_be_app_view, app_id, 0);
GPUSHARE_AT_BYTE(gpushare_be_app_view, quota_capsms, 4);
GPUSHARE_AT_BYTE(gpushare_be_app_view, weight, 8);
GPUSHARE_AT_BYTE(gpushare_be_app_view, attained_ns, 16);
GPUSHARE_AT_BYTE(gpushare_be_app_view, used_capsms, 24);
GPUSHARE_AT_BYTE(gpushare_be_app_view, packed, 32);
GPUSHARE_AT_BYTE(gpushare_be_app_view, reserved, 36);

GPUSHARE_SIZE(gpushare_query_view, 64);
GPUSHARE_AT_BYTE(gpushare_query_view, query, 0);
GPUSHARE_AT_BYTE(gpushare_query_view, lc_app, 8);
GPUSHARE_AT_BYTE(gpushare_query_view, reserved, 12);
GPUSHARE_AT_BYTE(gpushare_query_view, arrival_ns, 16);
GPUSHARE_AT_BYTE(gpushare_query_view, deadline_ns, 24);
GPUSHARE_AT_BYTE(gpushare_query_view, solo_ns, 32);
GPUSHARE_AT_BYTE(gpushare_query_view, issued_ns, 40);
GPUSHARE_AT_BYTE(gpushare_query_view, done_ns, 48);
GPUSHARE_AT_BYTE(gpushare_query_view, headroom_ns, 56);

GPUSHARE_SIZE(gpushare_head_view, 120);
GPUSHARE_AT_BYTE(gpushare_head_view, task, 0);
GPUSHARE_AT_BYTE(gpushare_head_view, app_class, 8);
GPUSHARE_AT_BYTE(gpushare_head_view, app, 12);
GPUSHARE_AT_BYTE(gpushare_head_view, queue_id, 16);
GPUSHARE_AT_BYTE(gpushare_head_view, kind, 20);
GPUSHARE_AT_BYTE(gpushare_head_view, query, 24);
GPUSHARE_AT_BYTE(gpushare_head_view, kernel_id, 32);
GPUSHARE_AT_BYTE(gpushare_head_view, kernel_index, 36);
GPUSHARE_AT_BYTE(gpushare_head_view, sequence, 40);
GPUSHARE_AT_BYTE(gpushare_head_view, ready_ns, 48);
GPUSHARE_AT_BYTE(gpushare_head_view, ready_count, 56);
GPUSHARE_AT_BYTE(gpushare_head_view, workers_per_sm_max, 60);
GPUSHARE_AT_BYTE(gpushare_head_view, blocks_left, 64);
GPUSHARE_AT_BYTE(gpushare_head_view, resumed, 72);
GPUSHARE_AT_BYTE(gpushare_head_view, evictable, 76);
GPUSHARE_AT_BYTE(gpushare_head_view, confinable, 80);
GPUSHARE_AT_BYTE(gpushare_head_view, pinned, 84);
GPUSHARE_AT_BYTE(gpushare_head_view, direction, 88);
GPUSHARE_AT_BYTE(gpushare_head_view, trained, 92);
GPUSHARE_AT_BYTE(gpushare_head_view, remaining_ns, 96);
GPUSHARE_AT_BYTE(gpushare_head_view, remaining_error_ns, 104);
GPUSHARE_AT_BYTE(gpushare_head_view, eviction_ns, 112);

GPUSHARE_SIZE(gpushare_part_view, 32);
GPUSHARE_AT_BYTE(gpushare_part_view, place, 0);
GPUSHARE_AT_BYTE(gpushare_part_view, lane, 4);
GPUSHARE_AT_BYTE(gpushare_part_view, workers, 8);
GPUSHARE_AT_BYTE(gpushare_part_view, evicting, 12);
GPUSHARE_AT_BYTE(gpushare_part_view, form, 16);
GPUSHARE_AT_BYTE(gpushare_part_view, reserved, 20);
GPUSHARE_AT_BYTE(gpushare_part_view, launched_ns, 24);

GPUSHARE_SIZE(gpushare_running_view, 264);
GPUSHARE_AT_BYTE(gpushare_running_view, task, 0);
GPUSHARE_AT_BYTE(gpushare_running_view, parts, 120);
GPUSHARE_AT_BYTE(gpushare_running_view, part_count, 248);
GPUSHARE_AT_BYTE(gpushare_running_view, reserved, 252);
GPUSHARE_AT_BYTE(gpushare_running_view, places, 256);

GPUSHARE_SIZE(gpushare_pair_option, 16);
GPUSHARE_AT_BYTE(gpushare_pair_option, lc_speed, 0);
GPUSHARE_AT_BYTE(gpushare_pair_option, lc_speed_alone, 4);
GPUSHARE_AT_BYTE(gpushare_pair_option, be_speed_be_side, 8);
GPUSHARE_AT_BYTE(gpushare_pair_option, be_speed_lc_side, 12);

GPUSHARE_SIZE(gpushare_snapshot, 256);
GPUSHARE_AT_BYTE(gpushare_snapshot, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_snapshot, sm_count, 4);
GPUSHARE_AT_BYTE(gpushare_snapshot, now_ns, 8);
GPUSHARE_AT_BYTE(gpushare_snapshot, plan_sequence, 16);
GPUSHARE_AT_BYTE(gpushare_snapshot, capsms_free, 24);
GPUSHARE_AT_BYTE(gpushare_snapshot, queued_ns, 32);
GPUSHARE_AT_BYTE(gpushare_snapshot, quiesced, 40);
GPUSHARE_AT_BYTE(gpushare_snapshot, partitions_available, 44);
GPUSHARE_AT_BYTE(gpushare_snapshot, eviction_available, 48);
GPUSHARE_AT_BYTE(gpushare_snapshot, reserved, 52);
GPUSHARE_AT_BYTE(gpushare_snapshot, copies, 56);
GPUSHARE_AT_BYTE(gpushare_snapshot, places, 120);
GPUSHARE_AT_BYTE(gpushare_snapshot, splits, 128);
GPUSHARE_AT_BYTE(gpushare_snapshot, lc_apps, 136);
GPUSHARE_AT_BYTE(gpushare_snapshot, be_apps, 144);
GPUSHARE_AT_BYTE(gpushare_snapshot, queries, 152);
GPUSHARE_AT_BYTE(gpushare_snapshot, heads, 160);
GPUSHARE_AT_BYTE(gpushare_snapshot, running, 168);
GPUSHARE_AT_BYTE(gpushare_snapshot, pairs, 176);
GPUSHARE_AT_BYTE(gpushare_snapshot, place_count, 184);
GPUSHARE_AT_BYTE(gpushare_snapshot, place_stride, 188);
GPUSHARE_AT_BYTE(gpushare_snapshot, split_count, 192);
GPUSHARE_AT_BYTE(gpushare_snapshot, split_stride, 196);
GPUSHARE_AT_BYTE(gpushare_snapshot, lc_app_count, 200);
GPUSHARE_AT_BYTE(gpushare_snapshot, lc_app_stride, 204);
GPUSHARE_AT_BYTE(gpushare_snapshot, be_app_count, 208);
GPUSHARE_AT_BYTE(gpushare_snapshot, be_app_stride, 212);
GPUSHARE_AT_BYTE(gpushare_snapshot, query_count, 216);
GPUSHARE_AT_BYTE(gpushare_snapshot, query_stride, 220);
GPUSHARE_AT_BYTE(gpushare_snapshot, head_count, 224);
GPUSHARE_AT_BYTE(gpushare_snapshot, head_stride, 228);
GPUSHARE_AT_BYTE(gpushare_snapshot, running_count, 232);
GPUSHARE_AT_BYTE(gpushare_snapshot, running_stride, 236);
GPUSHARE_AT_BYTE(gpushare_snapshot, pair_kernels, 240);
GPUSHARE_AT_BYTE(gpushare_snapshot, pair_stride, 244);
GPUSHARE_AT_BYTE(gpushare_snapshot, pair_version, 248);

GPUSHARE_SIZE(gpushare_planned_launch, 48);
GPUSHARE_AT_BYTE(gpushare_planned_launch, task, 0);
GPUSHARE_AT_BYTE(gpushare_planned_launch, fused_with, 8);
GPUSHARE_AT_BYTE(gpushare_planned_launch, blocks_max, 16);
GPUSHARE_AT_BYTE(gpushare_planned_launch, count, 24);
GPUSHARE_AT_BYTE(gpushare_planned_launch, form, 28);
GPUSHARE_AT_BYTE(gpushare_planned_launch, place, 32);
GPUSHARE_AT_BYTE(gpushare_planned_launch, lane_class, 36);
GPUSHARE_AT_BYTE(gpushare_planned_launch, workers, 40);
GPUSHARE_AT_BYTE(gpushare_planned_launch, reason, 44);

GPUSHARE_SIZE(gpushare_planned_eviction, 24);
GPUSHARE_AT_BYTE(gpushare_planned_eviction, task, 0);
GPUSHARE_AT_BYTE(gpushare_planned_eviction, place, 8);
GPUSHARE_AT_BYTE(gpushare_planned_eviction, workers_to_keep, 12);
GPUSHARE_AT_BYTE(gpushare_planned_eviction, reason, 16);
GPUSHARE_AT_BYTE(gpushare_planned_eviction, reserved, 20);

GPUSHARE_SIZE(gpushare_planned_hold, 32);
GPUSHARE_AT_BYTE(gpushare_planned_hold, task, 0);
GPUSHARE_AT_BYTE(gpushare_planned_hold, value_ns, 8);
GPUSHARE_AT_BYTE(gpushare_planned_hold, limit_ns, 16);
GPUSHARE_AT_BYTE(gpushare_planned_hold, reason, 24);
GPUSHARE_AT_BYTE(gpushare_planned_hold, reserved, 28);

GPUSHARE_SIZE(gpushare_lc_route, 16);
GPUSHARE_AT_BYTE(gpushare_lc_route, place, 0);
GPUSHARE_AT_BYTE(gpushare_lc_route, lane_class, 4);
GPUSHARE_AT_BYTE(gpushare_lc_route, fast_path, 8);
GPUSHARE_AT_BYTE(gpushare_lc_route, evict_overlapping, 12);

GPUSHARE_SIZE(gpushare_plan, 56);
GPUSHARE_AT_BYTE(gpushare_plan, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_plan, launch_count, 4);
GPUSHARE_AT_BYTE(gpushare_plan, eviction_count, 8);
GPUSHARE_AT_BYTE(gpushare_plan, hold_count, 12);
GPUSHARE_AT_BYTE(gpushare_plan, launches, 16);
GPUSHARE_AT_BYTE(gpushare_plan, evictions, 24);
GPUSHARE_AT_BYTE(gpushare_plan, holds, 32);
GPUSHARE_AT_BYTE(gpushare_plan, routes, 40);
GPUSHARE_AT_BYTE(gpushare_plan, replan_at_ns, 48);

GPUSHARE_SIZE(gpushare_policy_table, 40);
GPUSHARE_AT_BYTE(gpushare_policy_table, struct_size, 0);
GPUSHARE_AT_BYTE(gpushare_policy_table, version, 4);
GPUSHARE_AT_BYTE(gpushare_policy_table, name, 8);
GPUSHARE_AT_BYTE(gpushare_policy_table, make_plan, 16);
GPUSHARE_AT_BYTE(gpushare_policy_table, destroy, 24);
GPUSHARE_AT_BYTE(gpushare_policy_table, user, 32);

GPUSHARE_VALUE(GPUSHARE_OK, 0);
GPUSHARE_VALUE(GPUSHARE_CANCELLED, 1);
GPUSHARE_VALUE(GPUSHARE_UNKNOWN, 2);
GPUSHARE_VALUE(GPUSHARE_INVALID_ARGUMENT, 3);
GPUSHARE_VALUE(GPUSHARE_DEADLINE_EXCEEDED, 4);
GPUSHARE_VALUE(GPUSHARE_NOT_FOUND, 5);
GPUSHARE_VALUE(GPUSHARE_ALREADY_EXISTS, 6);
GPUSHARE_VALUE(GPUSHARE_PERMISSION_DENIED, 7);
GPUSHARE_VALUE(GPUSHARE_RESOURCE_EXHAUSTED, 8);
GPUSHARE_VALUE(GPUSHARE_FAILED_PRECONDITION, 9);
GPUSHARE_VALUE(GPUSHARE_ABORTED, 10);
GPUSHARE_VALUE(GPUSHARE_OUT_OF_RANGE, 11);
GPUSHARE_VALUE(GPUSHARE_UNIMPLEMENTED, 12);
GPUSHARE_VALUE(GPUSHARE_INTERNAL, 13);
GPUSHARE_VALUE(GPUSHARE_UNAVAILABLE, 14);
GPUSHARE_VALUE(GPUSHARE_DATA_LOSS, 15);
GPUSHARE_VALUE(GPUSHARE_UNAUTHENTICATED, 16);
GPUSHARE_VALUE(GPUSHARE_CHOICE_DEFAULT, 0);
GPUSHARE_VALUE(GPUSHARE_CHOICE_YES, 1);
GPUSHARE_VALUE(GPUSHARE_CHOICE_NO, 2);
GPUSHARE_VALUE(GPUSHARE_CLASS_LATENCY_CRITICAL, 1);
GPUSHARE_VALUE(GPUSHARE_CLASS_BEST_EFFORT, 2);
GPUSHARE_VALUE(GPUSHARE_TASK_DEFAULT, 0);
GPUSHARE_VALUE(GPUSHARE_TASK_KERNEL, 1);
GPUSHARE_VALUE(GPUSHARE_TASK_GRAPH, 2);
GPUSHARE_VALUE(GPUSHARE_TASK_LIBRARY, 3);
GPUSHARE_VALUE(GPUSHARE_TASK_MEMCPY, 4);
GPUSHARE_VALUE(GPUSHARE_TASK_OPAQUE, 5);
GPUSHARE_VALUE(GPUSHARE_FORM_ORIGINAL, 0);
GPUSHARE_VALUE(GPUSHARE_FORM_WORKERS, 1);
GPUSHARE_VALUE(GPUSHARE_FORM_SLICE, 2);
GPUSHARE_VALUE(GPUSHARE_FORM_FUSED, 3);
GPUSHARE_VALUE(GPUSHARE_FORM_GRAPH, 4);
GPUSHARE_VALUE(GPUSHARE_FORM_LIBRARY, 5);
GPUSHARE_VALUE(GPUSHARE_FORM_MEMCPY, 6);
GPUSHARE_VALUE(GPUSHARE_FORM_OPAQUE, 7);
GPUSHARE_VALUE(GPUSHARE_COPY_NONE, 0);
GPUSHARE_VALUE(GPUSHARE_COPY_HOST_TO_DEVICE, 1);
GPUSHARE_VALUE(GPUSHARE_COPY_DEVICE_TO_HOST, 2);
GPUSHARE_VALUE(GPUSHARE_COPY_PEER, 3);
GPUSHARE_VALUE(GPUSHARE_VERDICT_PENDING, 0);
GPUSHARE_VALUE(GPUSHARE_VERDICT_OK, 1);
GPUSHARE_VALUE(GPUSHARE_VERDICT_FAILED, 2);
GPUSHARE_VALUE(GPUSHARE_VERDICT_CANCELLED, 3);
GPUSHARE_VALUE(GPUSHARE_VERDICT_DROPPED, 4);
GPUSHARE_VALUE(GPUSHARE_VERDICT_TIMED_OUT, 5);
GPUSHARE_VALUE(GPUSHARE_VERDICT_DEVICE_LOST, 6);
GPUSHARE_VALUE(GPUSHARE_VERDICT_SHUTDOWN, 7);
GPUSHARE_VALUE(GPUSHARE_REASON_NONE, 0);
GPUSHARE_VALUE(GPUSHARE_REASON_LC_FIRST, 1);
GPUSHARE_VALUE(GPUSHARE_REASON_FAST_PATH, 2);
GPUSHARE_VALUE(GPUSHARE_REASON_BASELINE, 3);
GPUSHARE_VALUE(GPUSHARE_REASON_IDLE_DEVICE, 4);
GPUSHARE_VALUE(GPUSHARE_REASON_FITS_HEADROOM, 5);
GPUSHARE_VALUE(GPUSHARE_REASON_FITS_BLOCKING_BUDGET, 6);
GPUSHARE_VALUE(GPUSHARE_REASON_BESIDE_PARTITION, 7);
GPUSHARE_VALUE(GPUSHARE_REASON_ELASTIC_RETURN, 8);
GPUSHARE_VALUE(GPUSHARE_REASON_RESUME, 9);
GPUSHARE_VALUE(GPUSHARE_REASON_QUOTA, 10);
GPUSHARE_VALUE(GPUSHARE_REASON_FILLS_GAP, 11);
GPUSHARE_VALUE(GPUSHARE_REASON_HOLD_HEADROOM, 32);
GPUSHARE_VALUE(GPUSHARE_REASON_HOLD_BLOCKING, 33);
GPUSHARE_VALUE(GPUSHARE_REASON_HOLD_LC_ACTIVE, 34);
GPUSHARE_VALUE(GPUSHARE_REASON_HOLD_QUEUED_TIME, 35);
GPUSHARE_VALUE(GPUSHARE_REASON_HOLD_COPIES, 36);
GPUSHARE_VALUE(GPUSHARE_REASON_HOLD_WINDOW, 37);
GPUSHARE_VALUE(GPUSHARE_REASON_HOLD_CAPSM, 38);
GPUSHARE_VALUE(GPUSHARE_REASON_HOLD_HYSTERESIS, 39);
GPUSHARE_VALUE(GPUSHARE_REASON_HOLD_QUIESCED, 40);
GPUSHARE_VALUE(GPUSHARE_REASON_EVICT_FOR_LC, 64);
GPUSHARE_VALUE(GPUSHARE_REASON_EVICT_FOR_RESERVATION, 65);
GPUSHARE_VALUE(GPUSHARE_REASON_EVICT_FOR_LAYOUT, 66);
GPUSHARE_VALUE(GPUSHARE_REASON_EVICT_FOR_QUOTA, 67);
GPUSHARE_VALUE(GPUSHARE_REASON_USER_POLICY, 96);
GPUSHARE_VALUE(GPUSHARE_LOG_ERROR, 1);
GPUSHARE_VALUE(GPUSHARE_LOG_WARNING, 2);
GPUSHARE_VALUE(GPUSHARE_LOG_INFO, 3);
GPUSHARE_VALUE(GPUSHARE_DRIVE_THREAD, 0);
GPUSHARE_VALUE(GPUSHARE_DRIVE_POLL, 1);
GPUSHARE_VALUE(GPUSHARE_GUARANTEE_EVICTABLE, 1);
GPUSHARE_VALUE(GPUSHARE_GUARANTEE_CONFINABLE, 2);
GPUSHARE_VALUE(GPUSHARE_GUARANTEE_TIMESTAMPED, 4);
GPUSHARE_VALUE(GPUSHARE_GUARANTEE_DIVISIBLE, 8);
GPUSHARE_VALUE(GPUSHARE_EVENT_NONE, 0);
GPUSHARE_VALUE(GPUSHARE_EVENT_APP_CREATED, 1);
GPUSHARE_VALUE(GPUSHARE_EVENT_SUBMITTED, 2);
GPUSHARE_VALUE(GPUSHARE_EVENT_ADMITTED, 3);
GPUSHARE_VALUE(GPUSHARE_EVENT_REJECTED, 4);
GPUSHARE_VALUE(GPUSHARE_EVENT_LAUNCHED, 5);
GPUSHARE_VALUE(GPUSHARE_EVENT_FAST_PATH_LAUNCHED, 6);
GPUSHARE_VALUE(GPUSHARE_EVENT_EVICTED, 7);
GPUSHARE_VALUE(GPUSHARE_EVENT_PART_DONE, 8);
GPUSHARE_VALUE(GPUSHARE_EVENT_COMPLETED, 9);
GPUSHARE_VALUE(GPUSHARE_EVENT_HELD, 10);
GPUSHARE_VALUE(GPUSHARE_EVENT_QUERY_BEGUN, 11);
GPUSHARE_VALUE(GPUSHARE_EVENT_QUERY_ENDED, 12);
GPUSHARE_VALUE(GPUSHARE_EVENT_QUEUE_DEPTH, 13);
GPUSHARE_VALUE(GPUSHARE_EVENT_QUOTA_CHANGED, 14);
GPUSHARE_VALUE(GPUSHARE_EVENT_DEVICE_LOST, 15);
GPUSHARE_VALUE(GPUSHARE_EVENT_LANE_ABANDONED, 16);
GPUSHARE_VALUE(GPUSHARE_LANE_PLAIN, 0);
GPUSHARE_VALUE(GPUSHARE_LANE_LC, 1);
GPUSHARE_VALUE(GPUSHARE_LANE_BE, 2);
GPUSHARE_VALUE(GPUSHARE_LANE_COPY, 3);
GPUSHARE_VALUE(GPUSHARE_ABI_VERSION, 0);
GPUSHARE_VALUE(GPUSHARE_POLICY_VERSION, 0);
GPUSHARE_VALUE(GPUSHARE_PLAN_ACTIONS_MAX, 128);
GPUSHARE_VALUE(GPUSHARE_PARTS_MAX, 4);

int main(void) {
  printf("The layout of ABI version %d is as frozen.\n", GPUSHARE_ABI_VERSION);
  return 0;
}

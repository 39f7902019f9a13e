#!/usr/bin/env bash
# Everything that is checked and measured on a GPU, from binaries that are already built: no CMake, no ctest.
#
#   tools/gpu_check.sh FOLDER [OPTION...]    FOLDER: a build tree, or what tools/gpu_package.sh made of one
#   tools/gpu_check.sh --list                names each group with each program that it runs, and runs nothing
#
#   --groups a,b      what runs, in this order (default tests,kernels,eviction,cost):
#     tests           the tests that need a GPU
#     segments        graphs in segments: the contract suite, and tests/cuda/graphs/segments_test.cc, which prints what it measures
#     reservations    reservations and quotas, in fused launches too: SMs that blocks really hold, by %smid
#     ptx             twins of compiled kernels: PyTorch and Triton make some hundred launches (tests/python/gpu/record_launches.py),
#                     and cuda_ptx_launches_gpu_test runs them again; 20 of them under memcheck, racecheck and synccheck
#     fused           fused twins of compiled kernels: cuda_ptx_fused_gpu_test, ten pairs of large functions, and the GEMMs of
#                     GPT-2; GPUSHARE_FUSED_NETWORK names another network of tests/python/gpu/fused_functions.py
#     counters        pre-runs by CUPTI beside what ncu counted (cuda_pre_run_gpu_test); needs the permission to count
#     sanitizer       compute-sanitizer: memcheck and racecheck on the kernel contract, memcheck on the device
#                     (from PATH, FOLDER/compute-sanitizer or CUDA_HOME)
#     repeats         the forms of every kernel and of four fused pairs, 1000 random repeats (GPUSHARE_REPEATS)
#     kernels, eviction, cost, quota, soak    the benchmark of that name; soak and quota where built
#     idle            what a process that waits costs, in both latency modes; GPUSHARE_IDLE_ARGUMENTS are its arguments
#     gemm            the Tensor-core GEMMs against cuBLASLt; then the skinny ones compared beside kernels that keep
#                     an SM's load path busy, and the compact one beside gemm_roomy
#     convolution     cuDNN against im2col and a GEMM; cuDNN on part of the SMs, with and without their number
#     places          an LC app's p99 while places are made and ended (places_benchmark)
#     slices          the smallest slice of each kernel within 2 % (slice_benchmark)
#     overlap         Tensor and CUDA-core kernels together: the table of all ways at load ratio 1, the curves over the
#                     load ratio, the eviction of a fused kernel's part; GPUSHARE_OVERLAP_ARGUMENTS replaces the
#                     first one's arguments
#     warps           which warp scheduler the GPU has: FFMA beside streaming and sincos, in both orders of launch
#     kernelet        Kernelet's mixes under BASE, kernelet, OPT and adaptive, each run in real time;
#                     GPUSHARE_KERNELET_ARGUMENTS replaces the arguments
#     colocate        gpushare colocate on the GPU: --scenario FILE (default examples/scenarios/h200_gpu.json),
#                     --cases a,b and --queries N as there
#     calibrate       gpushare calibrate on the GPU, from profiles/h200.json; GPUSHARE_CALIBRATE_ARGUMENTS replaces
#                     its choice of kernels
#     samples         rows for models: 663 shapes of library calls, counters by ncu, then gpushare calibrate --catalogue
#     samples_more    rows that models of queries, copies and fused ratios need: blind shapes, whole queries at several sizes,
#                     then 14 kernels with their copies, contention and fused kernels; GPUSHARE_SAMPLES names the file
#     resnet          examples/pytorch/resnet50.py
#     partitions      benchmarks/papers/partitions.py, 8 s a set; GPUSHARE_PARTITIONS_ARGUMENTS replaces that
#     python          gpushare.torch and gpushare.triton: the checks of tests/python/gpu, with FOLDER's wheel
#                     (tools/python_wheel.sh) if it has one; GPUSHARE_PYTHON_ARGUMENTS are torch_check.py's arguments
#     faults          the faults of docs/reliability.md that need a GPU, each in a process of its own;
#                     GPUSHARE_FAULTS_ARGUMENTS chooses cases (--cases a,b)
#   --limit GROUP=S   seconds that a group may take; a group that is cut off has failed
#   --seconds S       for all of it (default 560); groups get what is left, and fail when nothing is
#
# Output goes to $OUT (default out/gpu_check): JSON of each program, its log, the GPU's state before and after
# (gpu.csv) and summary.json. A short table comes last. Not 0: a group failed, or ran nothing.
# GPUSHARE_SOAK_ARGUMENTS and GPUSHARE_QUOTA_ARGUMENTS replace those programs' arguments.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

groups=tests,kernels,eviction,cost
seconds=560
scenario="$root/examples/scenarios/h200_gpu.json"
cases=''
queries=''
declare -A limits=([tests]=240 [segments]=90 [reservations]=100 [sanitizer]=400 [repeats]=400 [kernels]=120 [eviction]=120 [cost]=90
  [quota]=240 [soak]=540 [colocate]=540 [idle]=120 [kernelet]=400
  [ptx]=540 [fused]=560 [counters]=60 [places]=90 [slices]=90 [overlap]=280 [gemm]=90 [convolution]=60 [calibrate]=300 [samples]=560 [samples_more]=470 [resnet]=90 [partitions]=220 [warps]=30 [faults]=240 [python]=390)

list=0
if [[ "${1:-}" == --list ]]; then
  list=1
  set -- "$root"
fi
[[ $# -ge 1 && -d "$1" ]] || die "tools/gpu_check.sh needs the folder of the binaries as its first argument."
folder="$(cd "$1" && pwd)"
shift
while [[ $# -gt 0 ]]; do
  [[ $# -ge 2 ]] || die "The option '$1' needs a value."
  case "$1" in
    --groups) groups="$2" ;;
    --limit)
      [[ "$2" =~ ^([a-z_]+)=([0-9]+)$ && -n "${limits[${BASH_REMATCH[1]}]:-}" ]] ||
        die "--limit is '$2', and it must be GROUP=SECONDS with a known group."
      limits[${BASH_REMATCH[1]}]="${BASH_REMATCH[2]}"
      ;;
    --seconds)
      [[ "$2" =~ ^[0-9]+$ ]] || die "--seconds is '$2', and it must be a whole number."
      seconds="$2"
      ;;
    --scenario) scenario="$2" ;;
    --cases) cases="$2" ;;
    --queries) queries="$2" ;;
    *) die "tools/gpu_check.sh does not know the option '$1'." ;;
  esac
  shift 2
done
IFS=',' read -ra chosen <<< "$groups"
for group in "${chosen[@]}"; do
  [[ -n "${limits[$group]:-}" ]] || die "There is no group '$group'; the groups are ${!limits[*]}."
done

out="${OUT:-$root/out/gpu_check}"
if [[ $list -eq 0 ]]; then
  mkdir -p "$out"
  out="$(cd "$out" && pwd)"
fi

# find_program NAME: its path, or nothing.
find_program() {
  if [[ -f "$folder/$1" ]]; then
    printf '%s\n' "$folder/$1"
  else
    find "$folder" -name "$1" -type f -not -path '*/CMakeFiles/*' -print -quit 2> /dev/null
  fi
}

# The library lies beside the programs, or in the build tree's own place.
library="$(find "$folder" -name 'libgpushare.so.1' -not -path '*/CMakeFiles/*' -print -quit 2> /dev/null)"
LD_LIBRARY_PATH="$folder${library:+:$(dirname "$library")}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH

gpu_state() {
  if ! command -v nvidia-smi > /dev/null; then return; fi
  timeout 20 nvidia-smi --format=csv,noheader \
    --query-gpu=name,driver_version,clocks.sm,clocks.max.sm,temperature.gpu,power.draw,clocks_throttle_reasons.active \
    | sed "s/^/$1, /" >> "$out/gpu.csv"
}

rows=()     # the table
results=()  # the entries of summary.json
failed=0
group_ends=0  # by SECONDS

left() {
  local until=$((seconds < group_ends ? seconds : group_ends))
  echo $((until - SECONDS))
}

# report GROUP NAME STATE TIME NOTE
report() {
  rows+=("$(printf '%-12s %-34s %-8s %5s s  %s' "$1" "$2" "$3" "$4" "$5")")
  results+=("  {\"group\": \"$1\", \"name\": \"$2\", \"state\": \"$3\", \"seconds\": $4, \"note\": \"${5//[\"\\]/ }\"}")
  if [[ "$3" == FAILED ]]; then failed=1; fi
}

# execute FILE COMMAND...: standard output to FILE, errors to FILE.log; leaves rc and took. `at_most`: seconds for it.
execute() {
  local file="$1" start=$SECONDS time
  shift
  time="$(left)"
  if [[ -n "${at_most:-}" && $at_most -lt $time ]]; then time=$at_most; fi
  if [[ $time -lt 2 ]]; then
    rc=125
    took=0
    return
  fi
  say "$(basename "$file"): at most $time s"
  timeout --kill-after=10 "$time" "$@" > "$file" 2> "$file.log"
  rc=$?
  took=$((SECONDS - start))
}

# Why a program failed, from its status and the last thing it said.
reason() {
  local said
  case "$rc" in
    124 | 137) echo 'cut off at its time limit' ;;
    125) echo 'no time was left' ;;
    *)
      said="$(cat "$1" "$1.log" 2> /dev/null | grep -aE 'ERROR SUMMARY|^\[  FAILED  \]|rror:|gpushare:' | tail -n 1)"
      echo "exit code $rc: $(printf '%s' "${said:-$(tail -n 1 "$1.log")}" | tr -d '\r\t' | cut -c 1-160)"
      ;;
  esac
}

# run_test GROUP LABEL PROGRAM ARGUMENT...: a GoogleTest program; one that runs nothing has failed.
run_test() {
  local group="$1" label="$2" program file passed skipped
  program="$(find_program "$3")"
  shift 3
  if [[ -z "$program" ]]; then
    report "$group" "$label" FAILED 0 'it is not in the folder'
    return
  fi
  file="$out/$label.txt"
  execute "$file" ${wrapper[@]+"${wrapper[@]}"} "$program" --gtest_color=no "$@"
  passed="$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$file" 2> /dev/null)"
  skipped="$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) test.*/\1/p' "$file" 2> /dev/null)"
  if [[ $rc -ne 0 ]]; then
    report "$group" "$label" FAILED "$took" "$(reason "$file")"
  elif [[ "${passed:-0}" -eq 0 ]]; then
    report "$group" "$label" FAILED "$took" 'no test ran'
  else
    report "$group" "$label" ok "$took" "${passed} passed, ${skipped:-0} skipped"
  fi
}

# run_benchmark GROUP LABEL PROGRAM ARGUMENT...: prints JSON; some programs are left out where they are not built.
run_benchmark() {
  local group="$1" label="$2" program file="$out/$2.json"
  program="$(find_program "$3")"
  shift 3
  if [[ -z "$program" ]]; then
    if [[ "$group" == soak || "$group" == quota ]]; then
      report "$group" "$label" absent 0 'it is not in the folder'
    else
      report "$group" "$label" FAILED 0 'it is not in the folder'
    fi
    return
  fi
  execute "$file" "$program" "$@"
  if [[ $rc -ne 0 ]]; then
    report "$group" "$label" FAILED "$took" "$(reason "$file")"
  elif [[ ! -s "$file" ]]; then
    report "$group" "$label" FAILED "$took" 'it printed nothing'
  else
    report "$group" "$label" ok "$took" ''
  fi
  tail -n 12 "$file.log"
}

# run_program GROUP LABEL PROGRAM ARGUMENT...: what it prints and its exit code are for people.
run_program() {
  local group="$1" label="$2" program file="$out/$2.txt"
  program="$(find_program "$3")"
  shift 3
  if [[ -z "$program" ]]; then
    report "$group" "$label" FAILED 0 'it is not in the folder'
    return
  fi
  execute "$file" "$program" "$@"
  if [[ $rc -eq 0 ]]; then
    report "$group" "$label" ok "$took" "$(tail -n 1 "$file" | cut -c 1-160)"
  else
    report "$group" "$label" FAILED "$took" "$(reason "$file")"
  fi
}

find_sanitizer() {
  local path
  for path in "$(command -v compute-sanitizer)" "$folder/compute-sanitizer/compute-sanitizer" "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" \
    "${CUDA_HOME:-/usr/local/cuda}/compute-sanitizer/compute-sanitizer"; do
    if [[ -n "$path" && -x "$path" ]]; then
      printf '%s\n' "$path"
      return
    fi
  done
}

wrapper=()

group_tests() {
  run_test tests cuda_driver_test cuda_driver_test
  run_test tests cuda_probe_test cuda_probe_test
  run_test tests device_contract_test device_contract_test '--gtest_filter=*/cuda'
  run_test tests cuda_library_calls_test cuda_library_calls_test
  run_test tests cuda_cudnn_places_test cuda_cudnn_places_test
  run_test tests cuda_lane_check_test cuda_lane_check_test
  run_test tests cuda_yield_lists_test cuda_yield_lists_test
  run_test tests cuda_signal_event_test cuda_signal_event_test
  run_test tests cuda_capture_test cuda_capture_test
  run_test tests cuda_beside_application_test cuda_beside_application_test
  run_test tests cuda_segments_test cuda_segments_test
  run_test tests cuda_evictable_nodes_test cuda_evictable_nodes_test
  run_test tests cuda_catalogue_kernels_test cuda_catalogue_kernels_test
  run_test tests cuda_ptx_functions_gpu_test cuda_ptx_functions_gpu_test
  if command -v nvidia-smi > /dev/null && [[ "$(nvidia-smi -L | wc -l)" -gt 1 ]]; then
    run_test tests cuda_two_devices_test cuda_two_devices_test
  fi
  run_test tests kernels_catalogue_test kernels_catalogue_test
  run_test tests kernels_contract_test kernels_contract_test
  run_test tests kernels_forms_test kernels_forms_test
  run_test tests kernels_wgmma_test kernels_wgmma_test
  run_test tests kernels_skinny_test kernels_skinny_test
  run_test tests kernels_convolution_test kernels_convolution_test
  run_test tests kernels_fused_test kernels_fused_test
  run_test tests kernels_interface_gpu_test kernels_interface_gpu_test
  GPUSHARE_DEVICE=cuda run_program tests own_kernel example_own_kernel
  GPUSHARE_DEVICE=cuda run_program tests kernels_beside_lc example_kernels
}

# The lines of segments_test that are no verdicts are measurements.
group_segments() {
  run_test segments segments_contract_test device_contract_test '--gtest_filter=*/cuda'
  run_test segments segments_test cuda_segments_test
  if [[ $list -eq 0 && -f "$out/segments_test.txt" ]]; then grep -vE '^\[|^Running|^$' "$out/segments_test.txt"; fi
}

# Prints one line a row; its rows as JSON are in reservations.json.
group_reservations() {
  GPUSHARE_RESERVATIONS_JSON="$out/reservations.json" run_test reservations reservations_test cuda_reservations_test
  if [[ $list -eq 0 && -f "$out/reservations_test.txt" ]]; then grep -E '^(reservation|quota|refused|fused) ' "$out/reservations_test.txt"; fi
}

# Prints one line of JSON a pre-run. A driver that lets only administrators count skips it all, which fails here.
group_counters() {
  GPUSHARE_TEST_PROFILE="$root/profiles/h200.json" run_test counters pre_run_test cuda_pre_run_gpu_test
  if [[ $list -eq 0 && -f "$out/pre_run_test.txt" ]]; then grep '^{' "$out/pre_run_test.txt"; fi
}

# Of each Tensor kernel one fused pair, plain and with setmaxnreg, and the pair of two Tensor kernels: all pairs take too
# long under racecheck or 1000 times.
fused_pairs='--gtest_filter=*gemm_mma_with_sincos_1_1*:*gemm_roomy_with_streaming_1_1*:*gemm_skinny_with_sincos_1_1*:*gemm_roomy_with_gemm_skinny_compact_1_1*'

group_sanitizer() {
  local sanitizer
  sanitizer="$(find_sanitizer)"
  if [[ -z "$sanitizer" ]]; then
    report sanitizer compute-sanitizer FAILED 0 'this machine has no compute-sanitizer'
    return
  fi
  export GPUSHARE_SMALL=1
  wrapper=("$sanitizer" --tool memcheck --error-exitcode 9)
  run_test sanitizer memcheck_kernels_contract kernels_contract_test
  wrapper=("$sanitizer" --tool racecheck --error-exitcode 9)
  run_test sanitizer racecheck_kernels_contract kernels_contract_test
  run_test sanitizer racecheck_kernels_wgmma kernels_wgmma_test
  run_test sanitizer racecheck_kernels_skinny kernels_skinny_test
  run_test sanitizer racecheck_kernels_forms kernels_forms_test
  run_test sanitizer racecheck_kernels_fused kernels_fused_test "$fused_pairs"
  wrapper=("$sanitizer" --tool memcheck --error-exitcode 9)
  run_test sanitizer memcheck_kernels_wgmma kernels_wgmma_test
  run_test sanitizer memcheck_kernels_skinny kernels_skinny_test
  run_test sanitizer memcheck_kernels_forms kernels_forms_test
  run_test sanitizer memcheck_kernels_fused kernels_fused_test
  # The driver refuses one parameter too many, which is how their number is found (src/cuda/code/parameter_layout.h): it is
  # no error of a preparation.
  wrapper=("$sanitizer" --tool memcheck --report-api-errors no --error-exitcode 9)
  run_test sanitizer memcheck_device_contract device_contract_test '--gtest_filter=*/cuda'
  wrapper=()
  unset GPUSHARE_SMALL
}

group_repeats() {
  export GPUSHARE_REPEATS="${GPUSHARE_REPEATS:-1000}"
  run_test repeats "kernels_forms_test_$GPUSHARE_REPEATS" kernels_forms_test
  run_test repeats "kernels_wgmma_test_$GPUSHARE_REPEATS" kernels_wgmma_test
  run_test repeats "kernels_skinny_test_$GPUSHARE_REPEATS" kernels_skinny_test
  run_test repeats "kernels_fused_test_$GPUSHARE_REPEATS" kernels_fused_test "$fused_pairs"
  unset GPUSHARE_REPEATS
}

group_kernels() { run_benchmark kernels kernel_benchmark kernel_benchmark --repeats 7 --ms 10; }
group_eviction() { run_benchmark eviction eviction_benchmark eviction_benchmark; }
group_places() { run_benchmark places places_benchmark places_benchmark; }
group_slices() { run_benchmark slices slice_benchmark slice_benchmark; }
group_cost() { run_benchmark cost library_cost_benchmark library_cost_benchmark --queries 1000; }
group_convolution() {
  run_benchmark convolution convolution_benchmark convolution_benchmark
  run_benchmark convolution convolution_places_benchmark convolution_places_benchmark
}

# Launches are recorded by several processes, each of a part of the functions.
record_launches() {  # GROUP FOLDER [CASES [PROCESSES [SECONDS]]]
  local group="$1" cases="${3:-all}" parts="${4:-12}" limit="${5:-180}" part start=$SECONDS pids=() pid ends='' written=0
  shift
  rm -rf "$1"
  rm -f "$out"/record_*.log
  for ((part = 0; part < parts; ++part)); do
    timeout --kill-after=10 "$limit" python3 "$root/tests/python/gpu/record_launches.py" --out "$1" --cases "$cases" \
      --part "$part/$parts" --limit-s "$((limit - 60))" > "$out/record_$part.log" 2>&1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    local code=0
    wait "$pid" || code=$?
    ends+=" $code"
  done
  tail -qn 1 "$out"/record_*.log
  if [[ -d "$1" ]]; then written="$(find "$1" -name '*.json' | wc -l)"; fi
  if [[ "$written" -gt 0 ]]; then
    report "$group" "record_launches_$cases" ok "$((SECONDS - start))" "$written launches"
  else
    report "$group" "record_launches_$cases" FAILED "$((SECONDS - start))" "no launch was recorded; exit codes$ends (77: no PyTorch, Triton or GPU)"
  fi
}

group_ptx() {
  local launches="$out/launches" some="$out/some_launches" name file tool sanitizer
  if [[ $list -eq 0 ]]; then
    record_launches ptx "$launches"
    mkdir -p "$some"
    for file in $(find "$launches" -name '*.json' | sort | awk 'NR % 16 == 1' | head -n 20); do
      for name in "${file%.json}".*; do ln -sf "$name" "$some/"; done
    done
  fi
  GPUSHARE_PTX_LAUNCHES="$launches" GPUSHARE_PTX_REPORT="$out/ptx_launches.jsonl" \
    run_test ptx cuda_ptx_launches_gpu_test cuda_ptx_launches_gpu_test
  sanitizer="$(find_sanitizer)"
  for tool in memcheck racecheck synccheck; do
    wrapper=("${sanitizer:-compute-sanitizer}" --tool "$tool" --error-exitcode 9)
    GPUSHARE_PTX_LAUNCHES="$some" GPUSHARE_PTX_REPEATS=2 run_test ptx "ptx_launches_$tool" cuda_ptx_launches_gpu_test
  done
  wrapper=()
}

# At most 150 s for each recording, 90 s for each benchmark and 80 s for the test: 560 s, the group's limit. The eleven
# functions are recorded by a process each. The recorded memory is large, and nobody reads it later.
group_fused() {
  local launches="$out/fused_launches" network="${GPUSHARE_FUSED_NETWORK:-gpt2}"
  at_most=80 run_test fused cuda_ptx_fused_gpu_test cuda_ptx_fused_gpu_test
  if [[ $list -eq 0 ]]; then TORCHINDUCTOR_COMPILE_THREADS=4 record_launches fused "$launches" pairs 11 150; fi
  run_benchmark fused ptx_fused_benchmark ptx_fused_benchmark --launches "$launches" --seconds 90
  if [[ $list -eq 0 ]]; then TORCHINDUCTOR_COMPILE_THREADS=16 record_launches fused "$launches" "network:$network" 1 150; fi
  run_benchmark fused ptx_fused_network ptx_fused_benchmark --launches "$launches" --network --seconds 90
  if [[ $list -eq 0 ]]; then
    rm -rf "$launches"
    cat "$out"/ptx_fused_*.json.log
  fi
}

group_gemm() {
  local neighbour
  run_benchmark gemm gemm_benchmark gemm_benchmark
  for neighbour in lbm streaming; do
    run_benchmark gemm "gemm_skinny_beside_$neighbour" gemm_benchmark --only skinny --repeats 3 --beside "$neighbour"
  done
  run_benchmark gemm gemm_skinny_compact_beside_gemm_roomy gemm_benchmark --only skinny_compact --repeats 3 --beside gemm_roomy
}

# The experiments print tables, of which the last lines are not enough.
group_overlap() {
  local arguments name
  read -ra arguments <<< "${GPUSHARE_OVERLAP_ARGUMENTS:---repeats 3 --seconds 130}"
  run_benchmark overlap overlap_benchmark overlap_benchmark "${arguments[@]}"
  run_benchmark overlap fused_curve_benchmark overlap_benchmark --experiment curve --repeats 3
  run_benchmark overlap fused_eviction_benchmark overlap_benchmark --experiment eviction
  for name in overlap_benchmark fused_curve_benchmark fused_eviction_benchmark; do
    if [[ $list -eq 0 && -f "$out/$name.json.log" ]]; then cat "$out/$name.json.log"; fi
  done
}

group_warps() { run_benchmark warps gpu_warp_scheduler warp_scheduler_benchmark; }

group_quota() {
  local arguments
  read -ra arguments <<< "${GPUSHARE_QUOTA_ARGUMENTS:-}"
  run_benchmark quota quota_benchmark overlap_benchmark --experiment quota ${arguments[@]+"${arguments[@]}"}
}

# One line a mix.
group_kernelet() {
  local arguments
  read -ra arguments <<< "${GPUSHARE_KERNELET_ARGUMENTS:---instances 250}"
  run_benchmark kernelet kernelet_benchmark kernelet_benchmark --device cuda ${arguments[@]+"${arguments[@]}"}
}

# One line a case and mode.
group_idle() {
  local arguments
  read -ra arguments <<< "${GPUSHARE_IDLE_ARGUMENTS:-}"
  run_benchmark idle idle_benchmark idle_benchmark --device cuda ${arguments[@]+"${arguments[@]}"}
  if [[ $list -eq 0 && -f "$out/idle_benchmark.json.log" ]]; then cat "$out/idle_benchmark.json.log"; fi
}

# One line a case.
group_faults() {
  local arguments
  read -ra arguments <<< "${GPUSHARE_FAULTS_ARGUMENTS:-}"
  run_benchmark faults faults_benchmark faults_benchmark ${arguments[@]+"${arguments[@]}"}
  if [[ $list -eq 0 && -f "$out/faults_benchmark.json.log" ]]; then cat "$out/faults_benchmark.json.log"; fi
  run_benchmark faults sticky_calls_benchmark sticky_calls_benchmark
}

group_soak() {
  local arguments time
  time=$(($(left) - 30))
  read -ra arguments <<< "${GPUSHARE_SOAK_ARGUMENTS:---seconds $((time > 10 ? time : 10))}"
  run_benchmark soak soak_benchmark soak_benchmark "${arguments[@]}"
}

group_colocate() {
  local program name file arguments
  name="colocate_$(basename "$scenario" .json)"
  file="$out/$name.txt"
  program="$(find_program gpushare)"
  if [[ -z "$program" || ! -f "$scenario" ]]; then
    report colocate "$name" FAILED 0 'the command or the scenario is missing'
    return
  fi
  arguments=(colocate "$scenario" --device cuda --out "$out/$name")
  if [[ -n "$cases" ]]; then arguments+=(--case "$cases"); fi
  if [[ -n "$queries" ]]; then arguments+=(--queries "$queries"); fi
  execute "$file" "$program" "${arguments[@]}"
  cat "$file"
  if [[ $rc -eq 0 ]]; then
    report colocate "$name" ok "$took" "$(grep -o 'answers verified in [^,;]*' "$file" | head -n 1)"
  else
    report colocate "$name" FAILED "$took" "$(reason "$file")"
  fi
}

group_calibrate() {
  local arguments
  read -ra arguments <<< "${GPUSHARE_CALIBRATE_ARGUMENTS:---kernels chain1,decode16,sincos_27us,streaming_59us,ffma,sincos_267us,sincos_2700us,sincos_2700us_yield,chain1_gelu,stencil,black_scholes,md5 --seconds-per-kernel 10}"
  run_program calibrate calibrate gpushare calibrate --device cuda --profile "$root/profiles/h200.json" \
    --out "$out/calibrated.json" "${arguments[@]}"
}

# Counters go into the samples file that the kernels begin.
run_counters() {
  local program file="$out/samples_counters.txt"
  program="$(find_program counters_benchmark)"
  if [[ -z "$program" ]]; then
    report samples samples_counters FAILED 0 'counters_benchmark is not in the folder'
    return
  fi
  execute "$file" python3 -B "$root/tools/counters.py" "$program" --samples "$out/samples.jsonl"
  if [[ $rc -eq 0 ]]; then
    report samples samples_counters ok "$took" "$(tail -n 1 "$file")"
  else
    report samples samples_counters FAILED "$took" "$(reason "$file")"
  fi
}

group_samples() {
  run_program samples samples_shapes gpushare calibrate --device cuda --shapes --repeats 5 --seconds-per-kernel 0.3 \
    --samples "$out/samples.jsonl" --out "$out/shapes.json"
  run_counters
  run_program samples samples_kernels gpushare calibrate --device cuda --catalogue --seconds "$(($(left) - 20))" \
    --samples "$out/samples.jsonl" --out "$out/sampled.json"
}

# Parts of the catalogue that fill each kind of bottleneck, and the parts of the fused kernels at several ratios. The
# last run is bounded by what is left; with the same $OUT a second call goes on from its checkpoint and skips nothing of
# the others, which take 2 minutes.
group_samples_more() {
  local file="${GPUSHARE_SAMPLES:-$out/samples_more.jsonl}"
  if [[ ! -f "$out/sampled_more.json.partial" ]]; then
    run_program samples_more samples_blind gpushare calibrate --device cuda --blind-shapes --repeats 7 --seconds-per-kernel 0.3 \
      --samples "$file" --out "$out/blind.json"
    run_program samples_more samples_queries gpushare calibrate --device cuda --queries --repeats 7 --seconds-per-kernel 0.5 \
      --samples "$file" --out "$out/queries.json"
  fi
  run_program samples_more samples_ratios gpushare calibrate --device cuda --resume --seconds-per-kernel 3 \
    --kernels gemm_mma,gemm_skinny,gemm_roomy,sincos,streaming,vector_add,cutcp,md5,lbm,ffma,mriq,tea,histogram,spmv \
    --seconds "$(($(left) - 30))" --samples "$file" --out "$out/sampled_more.json"
}

# Writes what a build writes into the Python package of the source tree: this machine may have no build.
declare_python() { python3 -B "$root/bindings/python/generate.py" > /dev/null; }

# catalogue_script GROUP NAME SCRIPT ARGUMENT...: a script of the source tree that needs the library and the catalogue
catalogue_script() {
  local group="$1" name="$2" script="$3" library catalogue file="$out/$2.txt"
  shift 3
  library="$(find "$folder" -name 'libgpushare.so.1' -print -quit)"
  catalogue="$(find "$folder" -name 'libgpushare_catalogue.so' -print -quit)"
  if [[ -z "$library" || -z "$catalogue" ]]; then
    report "$group" "$name" FAILED 0 'the libraries are not in the folder'
    return
  fi
  declare_python
  execute "$file" env GPUSHARE_LIBRARY="$library" PYTHONPATH="$root/bindings/python" PYTHONUNBUFFERED=1 \
    python3 -B "$root/$script" --catalogue "$catalogue" --out "$out/$name.json" "$@"
  tail -n 24 "$file"
  if [[ $rc -eq 0 ]]; then
    report "$group" "$name" ok "$took" ''
  else
    report "$group" "$name" FAILED "$took" "$(reason "$file")"
  fi
}

group_resnet() { catalogue_script resnet resnet50 examples/pytorch/resnet50.py --queries 1500 --calibrate-seconds 5; }

group_partitions() {
  local arguments
  read -ra arguments <<< "${GPUSHARE_PARTITIONS_ARGUMENTS:---seconds 8}"
  catalogue_script partitions partitions benchmarks/papers/partitions.py --limit-s "$(($(left) - 10))" "${arguments[@]}"
}

group_python() {
  local library wheel site arguments variables
  library="$(find "$folder" -name 'libgpushare.so.1' -print -quit)"
  wheel="$(find "$folder" -maxdepth 1 -name 'gpushare_runtime-*.whl' -print -quit)"
  if [[ -n "$wheel" ]]; then
    site="$(mktemp -d)"
    if ! python3 -m pip install --quiet --no-index --no-deps --target "$site" "$wheel"; then
      report python torch_check FAILED 0 "pip cannot install $(basename "$wheel")"
      return
    fi
    variables=(-u GPUSHARE_LIBRARY PYTHONPATH="$site")
  elif [[ -n "$library" ]]; then
    declare_python
    variables=(GPUSHARE_LIBRARY="$library" PYTHONPATH="$root/bindings/python")
  else
    report python torch_check FAILED 0 'neither a wheel nor the library is in the folder'
    return
  fi
  read -ra arguments <<< "${GPUSHARE_PYTHON_ARGUMENTS:-}"
  python_check torch_check "$out/python.json" ${arguments[@]+"${arguments[@]}"}
  python_check server_check "$out/python_server.json"
  python_check be_jobs_check "$out/python_be_jobs.json" --seconds 5
  python_check eager_be_check "$out/python_eager_be.json"
  python_check compiled_check "$out/compiled.json"
  python_check compiled_networks_check "$out/compiled_networks.json"
}

# python_check NAME JSON [ARGUMENT...]: a script of tests/python/gpu, with the variables of its caller
python_check() {
  local name="$1" json="$2" file="$out/$1.txt"
  shift 2
  execute "$file" env "${variables[@]}" python3 -B "$root/tests/python/gpu/$name.py" --out "$json" "$@"
  cat "$file"
  case $rc in
    0) report python "$name" ok "$took" "$(tail -n 1 "$file")" ;;
    77) report python "$name" skipped "$took" "$(tail -n 1 "$file")" ;;
    *)
      tail -n 40 "$file.log"
      report python "$name" FAILED "$took" "$(reason "$file")"
      ;;
  esac
}

if [[ $list -eq 1 ]]; then
  # --list: each function that runs a program prints its name instead.
  run_test() { echo "$1 $3"; }
  run_benchmark() { echo "$1 $3"; }
  run_program() { echo "$1 $3"; }
  run_counters() { echo 'samples counters_benchmark'; }
  find_sanitizer() { echo compute-sanitizer; }
  for group in tests ptx fused segments reservations counters sanitizer repeats kernels eviction places slices cost convolution gemm overlap warps quota soak idle kernelet calibrate samples samples_more faults; do
    "group_$group" 2> /dev/null
  done | sort -u
  printf '%s\n' 'colocate gpushare' 'resnet gpushare_catalogue' 'partitions gpushare_catalogue' 'python gpushare'
  exit 0
fi

: > "$out/gpu.csv"
gpu_state before
for group in "${chosen[@]}"; do
  group_ends=$((SECONDS + limits[$group]))
  "group_$group"
done
gpu_state after

{
  printf '{"gpu": ['
  awk '{ gsub(/["\\]/, " "); printf "%s\"%s\"", (NR > 1 ? ", " : ""), $0 }' "$out/gpu.csv"
  printf '],\n "results": [\n'
  for i in "${!results[@]}"; do
    printf '%s%s\n' "${results[$i]}" "$([[ $i -lt $((${#results[@]} - 1)) ]] && echo ,)"
  done
  printf ']}\n'
} > "$out/summary.json"

printf '\n'
cat "$out/gpu.csv"
printf '%s\n' "${rows[@]}"
printf '%s in %s s; output in %s\n' "$([[ $failed -eq 0 ]] && echo passed || echo FAILED)" "$SECONDS" "$out"
exit "$failed"

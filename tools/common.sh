# shellcheck shell=bash
# What the scripts of this folder share; sourced, never run.

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
jobs="${GPUSHARE_JOBS:-$(nproc)}"

say() { printf 'gpushare: %s\n' "$*"; }
die() {
  printf 'gpushare: %s\n' "$*" >&2
  exit 1
}

# step N OF WHAT...: what long work begins now, on stderr. Nothing where quiet is 1.
step() {
  if [[ "${quiet:-0}" -eq 1 ]]; then return; fi
  printf 'gpushare: step %d of %d, %d s elapsed: %s\n' "$1" "$2" "$SECONDS" "${*:3}" >&2
}

# Folder where tools/setup.sh puts the CUDA toolkit's wheels when the machine has no nvcc.
cuda_wheels="$root/build/cuda-toolchain"

# The CUDA toolkit with the runtime for aarch64; tools/setup.sh --aarch64 makes it.
# shellcheck disable=SC2034
cuda_aarch64="$root/build/cuda-aarch64"

# Virtual environment with the tools that check and pack the Python package; tools/setup.sh makes it.
# shellcheck disable=SC2034
python_tools="$root/build/python-tools"

# Virtual environment with Ray Serve; tools/setup.sh --ray makes it.
# shellcheck disable=SC2034
ray_python="$root/build/ray-python"

# Debian's source of the installed Abseil, which packages carry a private copy of; tools/abseil_source.sh fetches it.
# shellcheck disable=SC2034
abseil_source="$root/build/abseil-source"

# Prints the root of the CUDA toolkit to build with, or nothing.
cuda_toolkit() {
  local nvcc
  if [[ -z "${GPUSHARE_FORCE_CUDA_WHEELS:-}" ]]; then
    if [[ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ]]; then
      printf '%s\n' "${CUDA_HOME:-/usr/local/cuda}"
      return
    fi
    if nvcc="$(command -v nvcc)"; then
      dirname "$(dirname "$(readlink -f "$nvcc")")"
      return
    fi
  fi
  if [[ -x "$cuda_wheels/bin/nvcc" ]]; then printf '%s\n' "$cuda_wheels"; fi
}

# Whether no compilation will come out of a cache: there is no ccache, it is off, or this is continuous integration, whose
# time must not depend on what an earlier run left.
without_cache() {
  [[ -n "${CCACHE_DISABLE:-}" || "${CI:-}" == true ]] || ! command -v ccache > /dev/null
}

# The options of a build that compiles everything: filling a cache costs time, and precompiled headers and
# sources compiled in groups save some. clang-tidy goes without them, so that it misses the includes that
# a file lacks. Nobody debugs on such a machine: line numbers are all that its tests need.
precompiled_options() {  # PRESET
  case "$1" in
    dev | asan | ubsan | tsan)
      if without_cache; then
        printf '%s\n' -DGPUSHARE_CCACHE=OFF -DGPUSHARE_PRECOMPILED_HEADERS=ON -DGPUSHARE_UNITY=ON
        if [[ "$1" == dev ]]; then printf '%s\n' '-DCMAKE_CXX_FLAGS_DEBUG=-Og -g1'; fi
      else  # not what an earlier build without a cache left behind
        printf '%s\n' -UGPUSHARE_CCACHE -DGPUSHARE_PRECOMPILED_HEADERS=OFF -DGPUSHARE_UNITY=OFF
      fi
      ;;
  esac
}

# The tests are some 150 executables with their debug information: lld links one in a quarter of the time.
linker_options() {  # PRESET
  case "$1" in
    dev | asan | ubsan | tsan)
      if command -v ld.lld > /dev/null; then printf '%s\n' -DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld; fi
      ;;
  esac
}

# configure PRESET [-DOPTION=...]: cmake, quiet unless it fails. Does nothing when the same options and presets
# were configured before; ninja itself runs cmake again when a CMakeLists.txt has changed. It begins afresh, because
# CMake drops the options of a build tree whose compiler changes. What is compiled with the same flags stays.
configure() {
  local preset="$1"
  shift
  local folder="$root/build/$preset" options defaults log
  mapfile -t defaults < <(precompiled_options "$preset"; linker_options "$preset")
  set -- "${defaults[@]}" "$@"
  options="$* $(cksum < "$root/CMakePresets.json")"
  if [[ -f "$folder/build.ninja" && "$(cat "$folder/.configured" 2>/dev/null)" == "$options" ]]; then
    # CMake copies headers when it runs. The preset tidy builds nothing, so ask ninja for CMake's own step.
    ninja -C "$folder" build.ninja > "$folder/configure.log" 2>&1 || die "cmake failed again for the preset $preset; see $folder/configure.log."
    return
  fi
  mkdir -p "$folder"
  log="$folder/configure.log"
  say "configuring build/$preset"
  if ! (cd "$root" && cmake --fresh --preset "$preset" "$@") > "$log" 2>&1; then
    cat "$log" >&2
    die "cmake failed for the preset $preset."
  fi
  grep -E '^-- gpushare: ' "$log" | sed 's/^-- //' || true
  printf '%s' "$options" > "$folder/.configured"
}

# configure_package PRESET [-DOPTION=...]: what packages carry, with a private Abseil, for an old glibc, and with CUDA where a
# toolkit is. PRESET: package or package-aarch64.
configure_package() {
  local preset="$1" source_folder toolkit stubs machine
  shift
  machine="$(uname -m)"
  source_folder="$("$root/tools/abseil_source.sh")"
  toolkit="$(cuda_toolkit)"
  if [[ "$preset" == package-aarch64 ]]; then
    machine=aarch64
    toolkit=''
    if [[ -e "$cuda_aarch64/versions" ]]; then toolkit="$cuda_aarch64"; else set -- -DGPUSHARE_CUDA=OFF "$@"; fi
  fi
  stubs="$("$root/tools/glibc_stubs.sh" "$machine")" || say "without the symbols of an old glibc: the libraries need this machine's"
  configure "$preset" "-DGPUSHARE_ABSEIL_SOURCE=$source_folder" "-DGPUSHARE_CUDA_TOOLKIT=$toolkit" "-DGPUSHARE_GLIBC_STUBS=$stubs" "$@"
}

# Debian's packages whose code is compiled into the library, and those of the command besides (docs/licences.md).
# shellcheck disable=SC2034
library_parts=(libabsl-dev libeigen3-dev nlohmann-json3-dev libatomic-queue-dev libprotozero-dev libnanoflann-dev liblemon-dev)
# shellcheck disable=SC2034
command_parts=(libcli11-dev)

# take_licences FOLDER PACKAGE...: the text of each package's licence, as a file of its name. Abseil's names the Apache
# licence by its path on Debian, so its text goes along. The others state theirs in full.
take_licences() {
  local folder="$1" text texts=(/usr/share/common-licenses/Apache-2.0)
  mkdir -p "$folder"
  for text in "${@:2}"; do texts+=("/usr/share/doc/$text/copyright"); done
  for text in "${texts[@]}"; do
    if [[ -f "$text" ]]; then
      cp "$text" "$folder/$(basename "${text%/copyright}")"
    else
      say "without a licence that the packages should carry: this system has no $text"
    fi
  done
}

# The machine that an ELF file is for, as uname -m names it.
machine_of() {  # FILE
  readelf -h "$1" | sed -n 's/^ *Machine: *AArch64$/aarch64/p; s/^ *Machine: .*X86-64$/x86_64/p'
}

# What the names of the binary tools for a machine begin with: nothing for this one.
tool_prefix() {  # MACHINE
  if [[ "$1" != "$(uname -m)" ]]; then printf '%s-linux-gnu-' "$1"; fi
}

# The architectures that the kernels are compiled for when they only have to run here: those of the GPUs of this
# machine, else the H200's, whose profile is built in. Prints CMake's list.
architectures_here() {
  local capability list=''
  while read -r capability; do
    case "$capability" in
      9.0) list+='90a-real;' ;;  # with wgmma, which only this letter allows
      [0-9].[0-9] | [0-9][0-9].[0-9]) list+="${capability/./}-real;" ;;
    esac
  done < <(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sort -u)
  printf '%s\n' "${list:-90a-real}" | sed 's/;$//'
}

# Writes ninja's output to LOG and shows how far ninja is and about how long it still takes, from the mean of the steps
# so far: in one line of a terminal, else in a line every 15 s, or PROGRESS_SECONDS. Nothing where quiet is 1.
show_progress() {  # LOG
  local line done all left start=$SECONDS shown=$SECONDS counter='^\[([0-9]+)/([0-9]+)\] (.*)'
  while IFS= read -r line; do
    printf '%s\n' "$line"
    if [[ "${quiet:-0}" -eq 1 ]] || ! [[ "$line" =~ $counter ]]; then continue; fi
    done="${BASH_REMATCH[1]}" all="${BASH_REMATCH[2]}" line="${BASH_REMATCH[3]}"
    left=$((done > 0 ? (SECONDS - start) * (all - done) / done : 0))
    if [[ -t 2 ]]; then
      printf '\r\033[Kgpushare: [%s/%s] about %s s left  %.48s' "$done" "$all" "$left" "${line##*/}" >&2
    elif ((SECONDS - shown >= ${PROGRESS_SECONDS:-15})); then
      shown=$SECONDS
      say "built $done of $all, about $left s remaining" >&2
    fi
  done > "$1"
  if [[ -t 2 && "${quiet:-0}" -ne 1 ]]; then printf '\r\033[K' >&2; fi
}

# Writes the output of `apt-get install` to LOG and shows how many packages are fetched, unpacked and set up, in the way of
# show_progress. apt-get must speak English (LC_ALL=C).
show_apt_progress() {  # LOG
  local line all=0 step shown=$SECONDS
  local -A count=()
  while IFS= read -r line; do
    printf '%s\n' "$line"
    if [[ "$line" =~ ^([0-9]+)\ upgraded,\ ([0-9]+)\ newly\ installed, ]]; then
      all=$((BASH_REMATCH[1] + BASH_REMATCH[2]))
    fi
    case "$line" in
      Get:*) step=fetched ;;
      Unpacking\ *) step=unpacked ;;
      Setting\ up\ *) step='set up' ;;
      *) continue ;;
    esac
    # What apt-get fetches before it says how many packages there are, are lists.
    if [[ "$all" -eq 0 || "${quiet:-0}" -eq 1 ]]; then continue; fi
    count[$step]=$((${count[$step]:-0} + 1))
    if [[ -t 2 ]]; then
      printf '\r\033[Kgpushare: %s %s of %s packages' "$step" "${count[$step]}" "$all" >&2
    elif ((SECONDS - shown >= ${PROGRESS_SECONDS:-15})); then
      shown=$SECONDS
      say "$step ${count[$step]} of $all packages" >&2
    fi
  done > "$1"
  if [[ -t 2 && "${quiet:-0}" -ne 1 ]]; then printf '\r\033[K' >&2; fi
}

# ninja_with_progress FOLDER LOG [TARGET...]
ninja_with_progress() {
  local folder="$1" log="$2"
  shift 2
  NINJA_STATUS='[%f/%t] ' ninja -C "$folder" -j "$jobs" "$@" 2>&1 | show_progress "$log"
}

# compile PRESET [TARGET...]: ninja, with its counter; what else it prints is shown when it fails. Sources that cannot
# be compiled in groups, because names clash, are compiled one by one.
compile() {
  local preset="$1" start=$SECONDS
  shift
  say "building build/$preset"
  local log="$root/build/$preset/build.log"
  if ! ninja_with_progress "$root/build/$preset" "$log" "$@" &&
    ! { grep -q '^GPUSHARE_UNITY:BOOL=ON' "$root/build/$preset/CMakeCache.txt" &&
      say "the build failed with sources in groups; building them one by one" &&
      { grep -m 5 -E '(error|warning):' "$log" || true; } &&
      cmake -DGPUSHARE_UNITY=OFF "$root/build/$preset" > "$log" 2>&1 &&
      ninja_with_progress "$root/build/$preset" "$log" "$@"; }; then
    grep -vE '^\[[0-9]+/[0-9]+\] (Building|Linking|Checking)' "$log" | tail -n 200 >&2
    die "the build of the preset $preset failed."
  fi
  say "built build/$preset in $((SECONDS - start)) s"
}

# packed_targets BUILD: the targets of a build tree whose files the packages hold; without CUDA or Python's headers it has
# fewer. The catalogue's fused kernels, most of the CUDA code of a whole build, are for benchmarks alone.
packed_targets() {
  ninja -C "$1" -t targets all | sed -n 's/^\(gpushare\|gpushare_\(twins\|kernels\|command\|python_steps\)\): phony$/\1/p'
}

# sources_named FOLDER ENDING: the names, without the ending, of the files in FOLDER that end so.
sources_named() {
  local file
  for file in "$root/$1"/*"$2"; do
    if [[ -f "$file" ]]; then basename "$file" .cc; fi
  done
}

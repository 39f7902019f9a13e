#!/usr/bin/env bash
# Tries the packages of tools/package.sh on this system, as their user would: unpacks the tarball elsewhere, builds and
# runs programs against it, runs its command, and runs Python from the wheel. Nothing needs a GPU or the network; where
# there is a GPU, a runtime opens it and the command measures a kernel on it.
#
#   tools/package_check.sh FOLDER     FOLDER: has the tarball, the wheel, or both
#
# A step whose tool this system lacks is listed as skipped, and so are the programs where glibc is older than theirs.
# Exit code 0: nothing failed.
set -euo pipefail
[[ $# -eq 1 && -d "$1" ]] || { echo 'tools/package_check.sh needs the folder with the packages.' >&2; exit 2; }
folder="$(cd "$1" && pwd)"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
export GPUSHARE_DEVICE=sim
unset LD_LIBRARY_PATH GPUSHARE_LIBRARY PYTHONPATH
failed=0

ok() { printf 'ok       %s\n' "$*"; }
skipped() { printf 'skipped  %s\n' "$*"; }
fail() {
  printf 'FAILED   %s\n' "$*"
  if [[ -s "$scratch/log" ]]; then tail -n 20 "$scratch/log" | sed 's/^/         /'; fi
  failed=1
}
have() { command -v "$1" > /dev/null; }
# step NAME COMMAND...: runs it quietly
step() {
  local name="$1"
  shift
  if "$@" > "$scratch/log" 2>&1; then ok "$name"; else fail "$name"; fi
}

# Programs have the start-up code of the machine that built them, and the kernels its libstdc++; docs/package.md says why.
programs_glibc=2.34
glibc="$(ldd --version | sed -n '1s/.* //p')"
runs_programs() { printf '%s\n' "$programs_glibc" "$glibc" | sort -V -C; }
too_old="they need glibc $programs_glibc, and this system has $glibc"

# What a library or program needs is there, and is the C and C++ runtime or the package itself.
check_needs() {
  local file list files=("$tree/lib/libgpushare.so" "$tree/lib/libgpushare_ptx.so")
  if runs_programs; then
    files=("$tree"/lib/*.so "$tree/bin/gpushare")
  else
    skipped "the needs of the programs and of libgpushare_kernels.so: $too_old"
  fi
  for file in "${files[@]}"; do
    list="$(ldd "$file" 2>&1)" || true
    printf '%s:\n%s\n' "${file#"$tree/"}" "$list"
    printf '%s\n' "$list" > "$scratch/log"
    if grep -q 'not found' "$scratch/log"; then fail "$(basename "$file") needs what is not here"; fi
    if grep -qvE 'linux-vdso|libstdc\+\+\.so|libm\.so|libpthread\.so|libdl\.so|librt\.so|libgcc_s\.so|libc\.so|ld-linux|libgpushare(_kernels)?\.so' "$scratch/log"; then
      fail "$(basename "$file") needs more than the C and C++ runtime"
    fi
  done
  : > "$scratch/log"
}

prints_p99() { "$@" | tee "$scratch/printed" && grep -qE '^p99 alone [0-9]+ us, beside training [0-9]+ us' "$scratch/printed"; }

with_pkg_config() {  # COMPILER STANDARD SOURCE PROGRAM [PACKAGE...]
  local compiler="$1" standard="$2" source="$3" program="$4" cflags libs
  shift 4
  read -ra cflags <<< "$(pkg-config --cflags gpushare "$@")"
  read -ra libs <<< "$(pkg-config --libs gpushare "$@")"
  "$compiler" "$standard" -O1 -Wall "${cflags[@]}" "$source" "${libs[@]}" "-Wl,-rpath,$tree/lib" -o "$program"
}

c_program() {
  with_pkg_config cc -std=c99 "$examples/quickstart.c" "$scratch/c" && prints_p99 "$scratch/c"
}
cpp_program() {
  with_pkg_config c++ -std=c++17 "$examples/quickstart.cc" "$scratch/cpp" && "$scratch/cpp"
}
c_program_by_hand() {
  cc -std=c99 -I "$tree/include" "$examples/quickstart.c" -L "$tree/lib" -lgpushare "-Wl,-rpath,$tree/lib" -o "$scratch/hand" &&
    prints_p99 "$scratch/hand"
}
cmake_project() {
  cmake -S "$here/tests/install/consumer" -B "$scratch/cmake" -DCMAKE_PREFIX_PATH="$tree" && cmake --build "$scratch/cmake" &&
    "$scratch/cmake/consumer_c" && "$scratch/cmake/consumer_cpp"
}
host_with_abseil() {
  with_pkg_config c++ -std=c++17 "$here/tests/install/host_with_abseil.cc" "$scratch/host" absl_statusor absl_cord \
    absl_flat_hash_map absl_synchronization && ldd "$scratch/host" | grep libabsl_status && "$scratch/host"
}
python_program() { prints_p99 env PYTHONPATH="$scratch/site" python3 -B "$examples/quickstart.py"; }
gpu_command() {
  "$tree/bin/gpushare" calibrate --device cuda --kernels ffma --repeats 3 --seconds-per-kernel 1 --out "$scratch/calibrated.json"
}
python_extension() {
  PYTHONPATH="$scratch/site" python3 -B -c 'from gpushare import _library
_library.library()
assert _library.steps is not None'
}
gpu_info() { GPUSHARE_DEVICE=cuda "$tree/bin/gpushare" info | tee "$scratch/printed" && grep -q '^device: cuda, ' "$scratch/printed"; }
gpu_python() {
  PYTHONPATH="$scratch/site" python3 -B -c 'import gpushare
with gpushare.Runtime(device="cuda") as runtime:
    print(runtime.device())'
}
# A service of PyTorch beside a training, by the wheel alone; its figures are shown.
gpu_service() {
  local status=0
  GPUSHARE_DEVICE=cuda PYTHONPATH="$scratch/site" python3 -B "$here/tests/python/gpu/wheel_check.py" > "$scratch/log" 2>&1 || status=$?
  case "$status" in
    0) ok 'a service beside a training, from the wheel' && sed 's/^/         /' "$scratch/log" ;;
    77) skipped "a service beside a training: $(sed -n '$s/^skipped: //p' "$scratch/log")" ;;
    *) fail 'a service beside a training, from the wheel' ;;
  esac
}
installed_command() { (cd "$scratch" && "$tree/bin/gpushare" colocate smoke --device sim --queries 20); }

try_tarball() {
  check_needs
  if have python3 && [[ -f "$here/tools/package_links.py" ]]; then
    step 'the links of the pages' python3 -B "$here/tools/package_links.py" --check "$tree"
  else
    skipped 'the links of the pages: no python3, or not in the source tree'
  fi
  if runs_programs; then
    step 'the compiled C program' prints_p99 "$examples/quickstart"
    step 'the command, with an installed scenario' installed_command
  else
    skipped "the compiled C program and the command: $too_old"
  fi
  if have cc; then step 'a C program, compiled here' c_program_by_hand; else skipped 'a C program, compiled here: no cc'; fi
  if have cc && have c++ && have pkg-config; then
    step 'a C program by pkg-config' c_program
    step 'a C++ program by pkg-config' cpp_program
  else
    skipped 'programs by pkg-config: no compiler or no pkg-config'
  fi
  if have cc && have c++ && have cmake; then
    step 'C and C++ programs by find_package' cmake_project
  else
    skipped 'programs by find_package: no compiler or no cmake'
  fi
  if have c++ && have pkg-config && pkg-config --exists absl_status; then
    step "a host program with its own Abseil $(pkg-config --modversion absl_status)" host_with_abseil
  else
    skipped 'a host program with its own Abseil: none is installed'
  fi
}

sed -n 's/^PRETTY_NAME="\(.*\)"$/\1/p' /etc/os-release 2> /dev/null || true
ldd --version | sed -n 1p
tarball="$(find "$folder" -maxdepth 1 -name 'gpushare-*-linux-*.tar.gz' -not -name '*-debug.tar.gz' | sort | sed -n 1p)"
wheel="$(find "$folder" -maxdepth 1 -name 'gpushare_runtime-*.whl' | sort | sed -n 1p)"
[[ -n "$tarball$wheel" ]] || { echo "There is neither a tarball nor a wheel in $folder." >&2; exit 2; }
mkdir "$scratch/elsewhere" "$scratch/site"
tree=''
examples="$here/examples"
if [[ -n "$tarball" ]]; then
  tar xzf "$tarball" -C "$scratch/elsewhere"
  tree="$(echo "$scratch"/elsewhere/gpushare-*)"
  examples="$tree/share/doc/gpushare/examples"
  export PKG_CONFIG_PATH="$tree/lib/pkgconfig"
  try_tarball
else
  skipped 'the tarball: it is not in the folder'
fi
if [[ -z "$wheel" ]]; then
  skipped 'the wheel: it is not in the folder'
elif ! have python3; then
  skipped 'the wheel: no python3'
else
  # pip refuses a wheel that its platform tag does not allow here; without pip the file is unpacked.
  if python3 -m pip --version > /dev/null 2>&1; then
    step "pip takes $(basename "$wheel")" python3 -m pip install --quiet --no-index --no-deps --target "$scratch/site" "$wheel"
  else
    step "unpacking $(basename "$wheel"), without pip" python3 -m zipfile -e "$wheel" "$scratch/site"
  fi
  step "$(python3 --version) with the wheel" python_program
  if [[ -f "$scratch/site/gpushare/_steps.abi3.so" ]]; then
    step "the wheel's extension" python_extension
  else
    skipped "the wheel's extension: this wheel has none"
  fi
fi
if have nvidia-smi && [[ "$(nvidia-smi -L 2> /dev/null)" == GPU* ]]; then
  if [[ -n "$tree" ]] && runs_programs; then
    step 'the command opens the GPU' gpu_info
    step 'the command measures a kernel on the GPU' gpu_command
  fi
  if [[ -d "$scratch/site/gpushare" ]]; then
    step 'Python opens the GPU' gpu_python
    gpu_service
  fi
else
  skipped 'the GPU: there is none'
fi
exit "$failed"

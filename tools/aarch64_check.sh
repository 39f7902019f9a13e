#!/usr/bin/env bash
# Tries the packages of tools/package.sh --aarch64 on a machine of another kind: qemu runs the programs, on the simulated
# device. What a GPU or an aarch64 kernel would show is not tried.
#
#   tools/aarch64_check.sh FOLDER     FOLDER: has what tools/package.sh --aarch64 made: the tarball, the wheel, the .deb, or some
#
# A step whose file or tool is missing is listed as skipped. Exit code 0: nothing failed.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[[ $# -eq 1 && -d "$1" ]] || die 'tools/aarch64_check.sh needs the folder with the packages.'
folder="$(cd "$1" && pwd)"
for program in aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ qemu-aarch64-static; do
  command -v "$program" > /dev/null || die "$program is missing; tools/setup.sh --aarch64 installs it."
done
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
export GPUSHARE_DEVICE=sim
unset LD_LIBRARY_PATH GPUSHARE_LIBRARY PYTHONPATH
failed=0

# try NAME COMMAND...: runs it quietly
try() {
  local name="$1"
  shift
  if "$@" > "$scratch/log" 2>&1; then
    printf 'ok       %s\n' "$name"
  else
    printf 'FAILED   %s\n' "$name"
    tail -n 20 "$scratch/log" | sed 's/^/         /'
    failed=1
  fi
}
skipped() { printf 'skipped  %s\n' "$*"; }
package() { find "$folder" -maxdepth 1 -name "$1" -not -name '*-debug.tar.gz' | sort | sed -n 1p; }
# The cross compiler's own libraries are the system's.
emulated() { timeout 300 qemu-aarch64-static -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=/usr/aarch64-linux-gnu/lib "$@"; }
prints_p99() { "$@" | tee "$scratch/printed" && grep -qE '^p99 alone [0-9]+ us, beside training [0-9]+ us' "$scratch/printed"; }
compiled() {  # COMPILER STANDARD SOURCE
  "aarch64-linux-gnu-$1" "$2" -O1 -Wall -I "$tree/include" "$tree/share/doc/gpushare/examples/$3" -L "$tree/lib" -lgpushare \
    "-Wl,-rpath,$tree/lib" -o "$scratch/program" && prints_p99 emulated "$scratch/program"
}
installed_command() { (cd "$scratch" && emulated "$tree/bin/gpushare" colocate smoke --device sim --queries 20); }
deb_holds_library() {
  dpkg-deb --field "$1" Architecture | grep -qx arm64 && dpkg-deb --field "$1" Depends && dpkg-deb --extract "$1" "$scratch/deb" &&
    [[ "$(machine_of "$scratch/deb/usr/lib/libgpushare.so")" == aarch64 ]]
}
# Debian's Python for aarch64, which qemu runs beside its own C library.
python_program() {
  prints_p99 timeout 300 qemu-aarch64-static -L "$python_root" -E "LD_LIBRARY_PATH=$python_root/lib/aarch64-linux-gnu:$python_root/usr/lib/aarch64-linux-gnu" \
    -E "PYTHONPATH=$scratch/site" -E "PYTHONHOME=$python_root/usr" "$(readlink -f "$python_root/usr/bin/python3")" -B "$root/examples/quickstart.py"
}

tarball="$(package 'gpushare-*-linux-aarch64.tar.gz')"
if [[ -n "$tarball" ]]; then
  try "symbols of $(basename "$tarball")" python3 -B "$root/tools/check_symbols.py" "$tarball"
  tar xzf "$tarball" -C "$scratch"
  tree="$(echo "$scratch"/gpushare-*)"
  try 'the compiled C program' prints_p99 emulated "$tree/share/doc/gpushare/examples/quickstart"
  try 'a C program, compiled here' compiled gcc -std=c99 quickstart.c
  try 'a C++ program, compiled here' compiled g++ -std=c++17 quickstart.cc
  try 'the command, with an installed scenario' installed_command
else
  skipped 'the tarball: it is not in the folder'
fi
deb="$(package 'gpushare_*_arm64.deb')"
if [[ -n "$deb" ]]; then try "the contents of $(basename "$deb")" deb_holds_library "$deb"; else skipped 'the .deb: it is not in the folder'; fi
wheel="$(package 'gpushare_runtime-*_aarch64.whl')"
if [[ -z "$wheel" ]]; then
  skipped 'the wheel: it is not in the folder'
else
  try "symbols of $(basename "$wheel")" python3 -B "$root/tools/check_symbols.py" "$wheel"
  if python_root="$("$root/tools/aarch64_root.sh")"; then
    python3 -m zipfile -e "$wheel" "$scratch/site"
    try "Python for aarch64 with the wheel" python_program
  else
    skipped 'Python with the wheel: there is no Python for aarch64'
  fi
fi
exit "$failed"

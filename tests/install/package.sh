#!/usr/bin/env bash
# Packs a build with tools/package.sh, unpacks it elsewhere and uses it there. Then runs it in a host whose own Abseil
# would end the process at the first call.
#
#   tests/install/package.sh BUILD_FOLDER [C_COMPILER]
#
# Exit code 77: the build links the installed Abseil (GPUSHARE_ABSEIL_SOURCE is empty), so it cannot be packed.
set -euo pipefail
build="$1"
cc="${2:-cc}"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
if ! grep -q '^GPUSHARE_ABSEIL_SOURCE:PATH=.' "$build/CMakeCache.txt"; then
  echo 'Skipped: this build links the installed Abseil, and a package carries its own.'
  exit 77
fi
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
unset LD_LIBRARY_PATH
die() {
  echo "$*" >&2
  exit 1
}

"$root/tools/package.sh" "$scratch/packages" --build "$build" --tarballs
"$root/tools/package_check.sh" "$scratch/packages"
mkdir "$scratch/unpacked"
for archive in "$scratch"/packages/*.tar.gz; do tar xzf "$archive" -C "$scratch/unpacked"; done
tree="$(echo "$scratch"/unpacked/gpushare-*)"
library="$(readlink -f "$tree/lib/libgpushare.so")"

# Nothing but the C ABI is visible, so that no host can meet a symbol of the private Abseil.
nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' | sed 's/@.*//' | sort > "$scratch/exported"
diff "$root/bindings/c/symbols.txt" "$scratch/exported" || die 'The packed library exports other symbols than symbols.txt says.'

for file in "$tree"/lib/*.so "$tree/bin/gpushare"; do
  file="$(readlink -f "$file")"
  readelf -SW "$file" > "$scratch/sections"
  if grep -qE '\.(debug_info|symtab)' "$scratch/sections"; then die "$(basename "$file") is not stripped."; fi
  symbols="$(dirname "$file")/.debug/$(readelf --string-dump=.gnu_debuglink "$file" | sed -n 's/^ *\[ *0\] *//p')"
  [[ -f "$symbols" ]] || die "$(basename "$file") names debug information that is not beside it."
  [[ "$(readelf -n "$file" | grep 'Build ID')" == "$(readelf -n "$symbols" 2> /dev/null | grep 'Build ID')" ]] ||
    die "The debug information of $(basename "$file") is of another build."
done

# The host exports every function of Debian's Abseil, and each one aborts.
found="$(ld -shared -o "$scratch/empty.so" --trace -labsl_statusor 2> /dev/null | sed -n '/absl/p' || true)"
[[ -n "$found" ]] || die "There is no Abseil of this system to imitate."
nm -D --defined-only "$(dirname "$found")"/libabsl_*.so | awk '$2 ~ /^[TW]$/ && $3 ~ /^_ZN?K?4absl/ { print $3 }' | sort -u > "$scratch/hostile"
[[ "$(wc -l < "$scratch/hostile")" -gt 500 ]] || die 'The hostile host imitates too little of Abseil.'
awk '{ print ".globl " $1 "\n.type " $1 ", @function\n" $1 ":" } BEGIN { print ".text" } END { print "ud2\n.section .note.GNU-stack,\"\",@progbits" }' \
  "$scratch/hostile" > "$scratch/hostile.s"
"$cc" -std=c99 -rdynamic -I "$tree/include" "$root/examples/quickstart.c" "$scratch/hostile.s" -L "$tree/lib" -lgpushare \
  "-Wl,-rpath,$tree/lib" -o "$scratch/hostile_host"
"$scratch/hostile_host" > "$scratch/printed" && grep -q '^p99 alone ' "$scratch/printed" ||
  die 'The library calls the Abseil of its host.'
echo "The package works elsewhere, and beside $(wc -l < "$scratch/hostile") functions of a host's Abseil that must not be called."

#!/usr/bin/env bash
# Puts what tools/gpu_check.sh needs from a build tree into one flat folder, for a machine that has a GPU and no build
# environment: stripped programs, the shared libraries they were linked to, the library and its catalogue.
#
#   tools/gpu_package.sh BUILD FOLDER [PROGRAM...]    PROGRAM: names; none: all that gpu_check.sh may run
#
# There: tools/gpu_check.sh FOLDER. CUDA's own libraries are the machine's.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ $# -ge 2 && -d "$1" ]] || die "tools/gpu_package.sh needs a build tree and the folder to fill."
build="$(cd "$1" && pwd)"
mkdir -p "$2"
folder="$(cd "$2" && pwd)"
shift 2
programs=("$@")
if [[ ${#programs[@]} -eq 0 ]]; then
  mapfile -t programs < <(
    find "$build" -type f -executable -not -path '*/CMakeFiles/*' -not -path "$folder/*" \
      \( -name 'cuda_*_test' -o -name 'kernels_*_test' -o -name device_contract_test -o -name '*_benchmark' \
      -o -name example_own_kernel -o -name example_kernels -o -name gpushare \) -printf '%f\n' | sort -u
  )
fi
[[ ${#programs[@]} -gt 0 ]] || die "$build has no programs: build it first."

# take FILE [NAME]
take() {
  cp -L "$1" "$folder/${2:-$(basename "$1")}"
  strip "$folder/${2:-$(basename "$1")}"
}

for program in "${programs[@]}"; do
  path="$(find "$build" -name "$program" -type f -executable -not -path '*/CMakeFiles/*' -not -path "$folder/*" -print -quit)"
  [[ -n "$path" ]] || die "$build has no program '$program'."
  take "$path"
done
for library in libgpushare.so.1 libgpushare_kernels.so.0 libgpushare_catalogue.so; do
  path="$(find "$build" -name "$library" -not -path '*/CMakeFiles/*' -not -path "$folder/*" -print -quit)"
  [[ -z "$path" ]] || take "$path" "$library"
done
for file in "$folder"/*; do
  { ldd "$file" 2> /dev/null || true; } | awk '$1 ~ /^lib(absl|gtest|gmock|benchmark|gpushare|cudart)/ && $3 ~ /^\// { print $1, $3 }'
done | sort -u | while read -r name path; do
  [[ -f "$folder/$name" ]] || take "$path" "$name"
done
say "$(find "$folder" -type f | wc -l) files, $(du -sh "$folder" | cut -f 1), in $folder"

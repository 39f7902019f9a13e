#!/usr/bin/env bash
# clang-format over the project's own sources.
#
#   tools/format.sh            rewrites the files
#   tools/format.sh --check    changes nothing; fails and names the files that are not clean
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

cd "$root"
mapfile -t files < <(git ls-files --cached --others --exclude-standard \
  '*.h' '*.hpp' '*.c' '*.cc' '*.cu' '*.cuh')
present=()
for file in "${files[@]}"; do
  if [[ -f "$file" ]]; then present+=("$file"); fi
done
case "${1:-}" in
  --check)
    bad=()
    for file in "${present[@]}"; do
      clang-format --style=file "$file" | cmp -s - "$file" || bad+=("$file")
    done
    if [[ ${#bad[@]} -gt 0 ]]; then
      printf '%s: not clean under clang-format\n' "${bad[@]}" >&2
      die "${#bad[@]} of ${#present[@]} files are not clean; tools/format.sh rewrites them."
    fi
    say "clang-format: ${#present[@]} files are clean"
    ;;
  '') clang-format -i --style=file "${present[@]}" ;;
  *) die "tools/format.sh does not know the argument '$1'; it knows --check." ;;
esac

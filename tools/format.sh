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
    log="$(mktemp)"
    trap 'rm -f "$log"' EXIT
    if ! printf '%s\0' "${present[@]}" |
      xargs -0 -n 40 -P "$jobs" clang-format --style=file --dry-run --Werror 2> "$log"; then
      mapfile -t bad < <(sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error: .*/\1/p' "$log" | sort -u)
      if [[ ${#bad[@]} -eq 0 ]]; then cat "$log" >&2; fi
      printf '%s: not clean under clang-format\n' ${bad[@]+"${bad[@]}"} >&2
      die "${#bad[@]} of ${#present[@]} files are not clean; tools/format.sh rewrites them."
    fi
    say "clang-format: ${#present[@]} files are clean"
    ;;
  '') clang-format -i --style=file "${present[@]}" ;;
  *) die "tools/format.sh does not know the argument '$1'; it knows --check." ;;
esac

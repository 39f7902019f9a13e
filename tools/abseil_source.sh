#!/usr/bin/env bash
# Fetches Debian's source of the installed Abseil into build/abseil-source and prints that folder. Does nothing
# when it is there already.
#
#   tools/abseil_source.sh
#
# apt checks the signatures. The machine's own package lists, which have no sources, stay as they are.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[[ $# -eq 0 ]] || die 'tools/abseil_source.sh takes no argument.'

version="$(dpkg-query -W -f='${source:Version}' libabsl-dev 2> /dev/null)" || die 'libabsl-dev is missing; tools/setup.sh installs it.'
if [[ "$(cat "$abseil_source/version" 2> /dev/null)" == "$version" ]]; then
  printf '%s\n' "$abseil_source"
  exit 0
fi
"$root/tools/debian_source.sh" "abseil=$version" "$abseil_source"
printf '%s' "$version" > "$abseil_source/version"
printf '%s\n' "$abseil_source"

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
command -v dpkg-source > /dev/null || die 'dpkg-source is missing; tools/setup.sh installs dpkg-dev.'

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"  # apt downloads as a user of its own
mkdir -p "$scratch/lists/partial" "$scratch/parts"
# The servers of Debian's packages, asked for sources. apt knows them by one of these files.
touch "$scratch/sources.list"
if [[ -f /etc/apt/sources.list ]]; then
  sed -n 's/^deb \(.*debian.*\)/deb-src \1/p' /etc/apt/sources.list > "$scratch/sources.list"
fi
if [[ -f /etc/apt/sources.list.d/debian.sources ]]; then
  sed 's/^Types:.*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources > "$scratch/parts/debian.sources"
fi
apt=(apt-get -q -o "Dir::Etc::SourceList=$scratch/sources.list" -o "Dir::Etc::SourceParts=$scratch/parts"
  -o "Dir::State::Lists=$scratch/lists" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
if ! (cd "$scratch" && "${apt[@]}" update && "${apt[@]}" source --download-only "abseil=$version" &&
  dpkg-source --no-check -x abseil_*.dsc abseil) > "$scratch/log" 2>&1; then
  tail -n 20 "$scratch/log" >&2
  die "apt-get could not fetch the source of Abseil $version."
fi
printf '%s' "$version" > "$scratch/abseil/version"
rm -rf "$abseil_source"
mkdir -p "$(dirname "$abseil_source")"
mv "$scratch/abseil" "$abseil_source"
printf '%s\n' "$abseil_source"

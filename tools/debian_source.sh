#!/usr/bin/env bash
# Fetches the source of a Debian package and unpacks it.
#
#   tools/debian_source.sh SOURCE[=VERSION] FOLDER [OPTION...]    FOLDER: where it goes; an earlier one is replaced
#                                                                 OPTION: of `dpkg-source -x`, such as --skip-patches
#
# apt checks the signatures. The machine's own package lists, which have no sources, stay as they are.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[[ $# -ge 2 ]] || die 'tools/debian_source.sh needs the name of a source package and the folder to put it in.'
source_package="$1"
folder="$2"
shift 2
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
if ! (cd "$scratch" && "${apt[@]}" update && "${apt[@]}" source --download-only "$source_package" &&
  dpkg-source --no-check "$@" -x ./*.dsc unpacked) > "$scratch/log" 2>&1; then
  tail -n 20 "$scratch/log" >&2
  die "apt-get could not fetch the source $source_package."
fi
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
mv "$scratch/unpacked" "$folder"

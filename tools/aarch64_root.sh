#!/usr/bin/env bash
# Makes the folder build/aarch64-root and prints it: Debian's C library and Python for aarch64, for programs that qemu runs.
# Does nothing when it is there already.
#
#   tools/aarch64_root.sh
#
# apt checks the signatures. The machine's own package lists and packages stay as they are.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
[[ $# -eq 0 ]] || die 'tools/aarch64_root.sh takes no argument.'

folder="$root/build/aarch64-root"
if [[ -e "$folder/complete" ]]; then
  printf '%s\n' "$folder"
  exit 0
fi
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"  # apt downloads as a user of its own
mkdir -p "$scratch/lists/partial" "$scratch/archives/partial" "$scratch/parts"
touch "$scratch/status" "$scratch/sources.list"
if [[ -f /etc/apt/sources.list ]]; then cp /etc/apt/sources.list "$scratch/sources.list"; fi
if [[ -f /etc/apt/sources.list.d/debian.sources ]]; then cp /etc/apt/sources.list.d/debian.sources "$scratch/parts/"; fi
# An empty list of installed packages: apt then fetches all that Python needs.
apt=(apt-get -q -y -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State::status=$scratch/status"
  -o "Dir::Etc::SourceList=$scratch/sources.list" -o "Dir::Etc::SourceParts=$scratch/parts"
  -o "Dir::State::Lists=$scratch/lists" -o "Dir::Cache::archives=$scratch/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=)
if ! { "${apt[@]}" update && "${apt[@]}" install --download-only --no-install-recommends python3-minimal libpython3-stdlib libstdc++6; } > "$scratch/log" 2>&1; then
  tail -n 20 "$scratch/log" >&2
  die 'apt-get could not fetch Python for aarch64.'
fi
rm -rf "$folder"
mkdir -p "$folder"
for package in "$scratch"/archives/*.deb; do dpkg-deb --extract "$package" "$folder"; done
touch "$folder/complete"
printf '%s\n' "$folder"

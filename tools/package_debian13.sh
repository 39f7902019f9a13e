#!/usr/bin/env bash
# Tries the packages of tools/package.sh on a clean Debian 13, in a folder that debootstrap fills. Needs root and the network.
#
#   tools/package_debian13.sh FOLDER [ROOT]    FOLDER: has the packages; ROOT (default build/debian13): the system, which is
#                                              kept for the next time
#
# There: tools/package_check.sh with the tarball and the wheel beside Debian 13's own Abseil; then the .deb, installed.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ $# -ge 1 && $# -le 2 && -d "$1" ]] || die 'tools/package_debian13.sh needs the folder with the packages.'
folder="$(cd "$1" && pwd)"
system="${2:-$root/build/debian13}"
[[ "$(id -u)" -eq 0 ]] || die 'tools/package_debian13.sh makes a system in a folder, which only root can.'
if [[ ! -e "$system/complete" ]]; then
  command -v debootstrap > /dev/null || die 'debootstrap is missing: apt-get install debootstrap.'
  say "making a Debian 13 in $system"
  rm -rf "$system"
  log="$(mktemp)"
  if ! debootstrap --variant=minbase --include=gcc,g++,libc6-dev,pkg-config,cmake,make,libabsl-dev,python3,python3-pip \
    trixie "$system" http://deb.debian.org/debian > "$log" 2>&1; then
    tail -n 20 "$log" >&2
    die "debootstrap could not make $system."
  fi
  rm -f "$log"
  touch "$system/complete"
fi

rm -rf "$system/trial"
mkdir -p "$system/trial/packages" "$system/trial/tools" "$system/trial/tests"
cp "$folder"/gpushare* "$system/trial/packages/"
cp "$root/tools/package_check.sh" "$system/trial/tools/"
cp -R "$root/tests/install" "$system/trial/tests/"
# The loader asks /proc where a program lies ($ORIGIN); the mount ends with the command.
inside=(unshare --mount --pid --fork "--mount-proc=$system/proc"
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 GPUSHARE_DEVICE=sim chroot "$system")
"${inside[@]}" /trial/tools/package_check.sh /trial/packages

# shellcheck disable=SC2016
"${inside[@]}" bash -euc '
  trap "dpkg -r gpushare-dbgsym gpushare > /dev/null" EXIT
  dpkg -i /trial/packages/gpushare_*.deb /trial/packages/gpushare-dbgsym_*.deb > /dev/null
  cd /trial
  cc -std=c99 /usr/share/doc/gpushare/examples/quickstart.c -lgpushare -o installed
  ./installed | grep "^query: ok"
  gpushare colocate smoke --queries 20 --device sim --out smoke > /dev/null
  pkg-config --modversion gpushare
  echo "ok       the .deb, installed"
'

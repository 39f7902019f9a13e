#!/usr/bin/env bash
# Tries the packages of tools/package.sh on clean systems, each in a folder that debootstrap fills. Needs root, the network
# and debootstrap (tools/setup.sh), and for Ubuntu the keyring that Ubuntu's package ubuntu-keyring has.
#
#   tools/package_systems.sh FOLDER [SYSTEM...]    FOLDER: has the packages; SYSTEM: debian13, ubuntu2404 (default: both)
#
# A system is kept under build/systems for the next time. In it: tools/package_check.sh with the tarball and the wheel
# beside the system's own Abseil; then the .deb, installed.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ $# -ge 1 && -d "$1" ]] || die 'tools/package_systems.sh needs the folder with the packages.'
folder="$(cd "$1" && pwd)"
shift
[[ $# -gt 0 ]] || set -- debian13 ubuntu2404
for system in "$@"; do
  [[ "$system" =~ ^(debian13|ubuntu2404)$ ]] ||
    die "tools/package_systems.sh does not know the system '$system'; it knows debian13 and ubuntu2404."
done
[[ "$(id -u)" -eq 0 ]] || die 'tools/package_systems.sh makes systems in folders, which only root can.'

# Debian 12's debootstrap has no script of its own for noble; that of jammy makes one.
make_system() {  # SYSTEM FOLDER
  local options=(--variant=minbase --force-check-gpg
    --include=gcc,g++,libc6-dev,pkg-config,cmake,make,libabsl-dev,python3,python3-pip) suite script log
  case "$1" in
    debian13) suite=trixie script=trixie ;;
    ubuntu2404)
      suite=noble script=jammy
      options+=(--components=main,universe --keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg)
      ;;
  esac
  if [[ -e "$2/complete" ]]; then return; fi
  command -v debootstrap > /dev/null || die 'debootstrap is missing; tools/setup.sh installs it.'
  say "making $1 in $2"
  rm -rf "$2"
  log="$(mktemp)"
  if ! debootstrap "${options[@]}" "$suite" "$2" '' "/usr/share/debootstrap/scripts/$script" > "$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "debootstrap could not make $2."
  fi
  rm -f "$log"
  touch "$2/complete"
}

# The loader asks /proc where a program lies ($ORIGIN); the mount ends with the command.
inside() {  # FOLDER COMMAND...
  local system="$1"
  shift
  unshare --mount --pid --fork "--mount-proc=$system/proc" \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 GPUSHARE_DEVICE=sim chroot "$system" "$@"
}

try_system() {  # FOLDER
  rm -rf "$1/trial"
  mkdir -p "$1/trial/packages" "$1/trial/tools" "$1/trial/tests"
  cp "$folder"/gpushare* "$1/trial/packages/"
  cp "$root/tools/package_check.sh" "$1/trial/tools/"
  cp -R "$root/tests/install" "$1/trial/tests/"
  inside "$1" /trial/tools/package_check.sh /trial/packages
  # shellcheck disable=SC2016
  inside "$1" bash -euc '
    trap "dpkg -r gpushare-dbgsym gpushare > /dev/null" EXIT
    dpkg -i /trial/packages/gpushare_*.deb /trial/packages/gpushare-dbgsym_*.deb > /dev/null
    cd /trial
    cc -std=c99 /usr/share/doc/gpushare/examples/quickstart.c -lgpushare -o installed
    ./installed | grep "^p99 alone"
    gpushare colocate smoke --queries 20 --device sim --out smoke > /dev/null
    pkg-config --modversion gpushare
    echo "ok       the .deb, installed"
  '
}

for system in "$@"; do
  make_system "$system" "$root/build/systems/$system"
  try_system "$root/build/systems/$system"
done

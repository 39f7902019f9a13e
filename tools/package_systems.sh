#!/usr/bin/env bash
# Tries the packages of tools/package.sh on clean systems, each in a folder that debootstrap fills. Needs root, the network
# and debootstrap (tools/setup.sh), and for Ubuntu the keyring that Ubuntu's package ubuntu-keyring has.
#
#   tools/package_systems.sh FOLDER [SYSTEM...]    FOLDER: has the packages
#
#   SYSTEM: debian13, ubuntu2404       the tarball and the wheel beside the system's own Abseil, by tools/package_check.sh;
#                                      then the .deb, installed. Default: these two
#           debian11, ubuntu2004       the libraries and the wheel, which need no newer glibc. The system's Python is too
#                                      old for the package, so that a Python 3.11 is built there, from Debian's source
#
# A system is kept under build/systems for the next time.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ $# -ge 1 && -d "$1" ]] || die 'tools/package_systems.sh needs the folder with the packages.'
folder="$(cd "$1" && pwd)"
shift
[[ $# -gt 0 ]] || set -- debian13 ubuntu2404
for system in "$@"; do
  [[ "$system" =~ ^(debian11|debian13|ubuntu2004|ubuntu2404)$ ]] ||
    die "tools/package_systems.sh does not know the system '$system'; it knows debian11, debian13, ubuntu2004 and ubuntu2404."
done
[[ "$(id -u)" -eq 0 ]] || die 'tools/package_systems.sh makes systems in folders, which only root can.'

is_old() { [[ "$1" =~ ^(debian11|ubuntu2004)$ ]]; }

# Debian 12's debootstrap has no script of its own for noble; that of jammy makes one.
make_system() {  # SYSTEM FOLDER
  local packages=gcc,g++,libc6-dev,pkg-config,make options=(--variant=minbase --force-check-gpg) suite script log
  if is_old "$1"; then packages+=,zlib1g-dev,libffi-dev; else packages+=,cmake,libabsl-dev,python3,python3-pip; fi
  options+=("--include=$packages")
  case "$1" in
    debian11) suite=bullseye script=bullseye ;;
    debian13) suite=trixie script=trixie ;;
    ubuntu2004) suite=focal script=focal ;;
    ubuntu2404) suite=noble script=jammy ;;
  esac
  if [[ "$1" == ubuntu* ]]; then options+=(--components=main,universe --keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg); fi
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
    env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 GPUSHARE_DEVICE=sim chroot "$system" "$@"
}

# Python 3.11 with what the package uses: ctypes, and pip to install it. A few minutes of compiling.
make_python() {  # FOLDER
  if [[ -x "$1/usr/local/bin/python3" ]]; then return; fi
  say "building Python 3.11 in $1"
  "$root/tools/debian_source.sh" python3.11/bookworm "$1/python-source" --skip-patches
  # shellcheck disable=SC2016
  inside "$1" bash -euc '
    trap "tail -n 20 /python-source/log >&2" ERR
    cd /python-source
    ./configure --disable-test-modules OPT="-O1 -DNDEBUG" > log 2>&1
    make -j "$(nproc)" >> log 2>&1
    make install >> log 2>&1
    cd / && rm -rf /python-source
  ' || die "Python could not be built in $1."
}

try_system() {  # SYSTEM FOLDER
  local system="$1"
  shift
  rm -rf "$1/trial"
  mkdir -p "$1/trial/packages" "$1/trial/tools" "$1/trial/tests" "$1/trial/examples"
  cp "$folder"/gpushare* "$1/trial/packages/"
  cp "$root/tools/package_check.sh" "$1/trial/tools/"
  cp "$root/examples/quickstart.py" "$1/trial/examples/"
  cp -R "$root/tests/install" "$1/trial/tests/"
  inside "$1" /trial/tools/package_check.sh /trial/packages
  if is_old "$system"; then return; fi
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
  if is_old "$system"; then make_python "$root/build/systems/$system"; fi
  try_system "$system" "$root/build/systems/$system"
done

#!/usr/bin/env bash
# tools/common.sh, as tools/demo.sh uses it: a build shows how far it is, its log keeps every line, a failed build
# fails, and kernels are compiled for the GPUs of the machine. Programs on PATH stand for ninja and nvidia-smi.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../../tools/common.sh"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
PATH="$scratch/bin:$PATH"

program() {  # NAME, its body on the standard input
  { printf '#!/bin/sh\n'; cat; } > "$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
}
expect() {  # WHAT WANTED GOT
  [[ "$2" == "$3" ]] || die "$1 is '$3', and should be '$2'."
}

program ninja <<'END'
[ "$NINJA_STATUS" = '[%f/%t] ' ] || exit 3
echo "[1/3] Building CXX object a.cc.o"
echo "a.cc:1: warning: of the compiler"
sleep "${FAKE_SLEEP:-0}"
echo "[2/3] Building CXX object b.cc.o"
exit "${FAKE_STATUS:-0}"
END
ninja_with_progress "$scratch" "$scratch/log" 2> "$scratch/shown" || die 'A build that ends well fails.'
expect 'the lines of the log' 3 "$(wc -l < "$scratch/log")"
expect 'what a short build shows' '' "$(cat "$scratch/shown")"
if FAKE_STATUS=1 ninja_with_progress "$scratch" "$scratch/log"; then die 'A build that fails is taken for a good one.'; fi

# A terminal gets the counter at once, without the names of folders.
if command -v script > /dev/null; then
  script -qec "bash -c 'source \"$here/../../tools/common.sh\"; ninja_with_progress \"$scratch\" \"$scratch/log\"'" /dev/null \
    > "$scratch/shown"
  grep -q 'gpushare: \[2/3\] ' "$scratch/shown" || die "A terminal does not show ninja's counter."
fi
# Elsewhere a line comes every 15 s.
printf '[7/9] Building CXX object a.cc.o\n' | show_progress "$scratch/log" 2> "$scratch/shown"
expect 'what a new build shows' '' "$(cat "$scratch/shown")"
{ sleep 0.1; printf '[7/9] Building CXX object a.cc.o\n'; } | PROGRESS_SECONDS=0 show_progress "$scratch/log" 2> "$scratch/shown"
expect 'what a long build shows' 'gpushare: built 7 of 9, about 0 s remaining' "$(cat "$scratch/shown")"

quiet=1 PROGRESS_SECONDS=0 show_progress "$scratch/log" <<< '[7/9] Building CXX object a.cc.o' 2> "$scratch/shown"
expect 'what a quiet build shows' '' "$(cat "$scratch/shown")"
{ sleep 2.1; printf '[2/6] Building CXX object a.cc.o\n'; } | PROGRESS_SECONDS=1 show_progress "$scratch/log" 2> "$scratch/shown"
grep -qE '^gpushare: built 2 of 6, about [46] s remaining$' "$scratch/shown" || die "The estimate of a build is wrong: $(cat "$scratch/shown")"

# So does apt-get, whose lists are not counted.
apt_output() {
  printf '%s\n' 'Get:1 http://deb.example/debian bookworm InRelease [1 kB]' '0 upgraded, 2 newly installed, 0 to remove and 3 not upgraded.' \
    'Get:1 http://deb.example/debian bookworm/main amd64 a amd64 1 [1 kB]' 'Get:2 http://deb.example/debian bookworm/main amd64 b amd64 1 [1 kB]' \
    'Unpacking a (1) ...' 'Setting up a (1) ...' 'Unpacking b (1) ...' 'Setting up b (1) ...'
}
{ sleep 0.1; apt_output; } | PROGRESS_SECONDS=0 show_apt_progress "$scratch/log" 2> "$scratch/shown"
expect 'what apt-get shows' 'fetched 1,fetched 2,unpacked 1,set up 1,unpacked 2,set up 2,' \
  "$(sed -n 's/^gpushare: \(.*\) of 2 packages$/\1/p' "$scratch/shown" | tr '\n' ',')"
apt_upgrades() { apt_output | sed 's/^0 upgraded, 2 newly/1 upgraded, 1 newly/'; }
{ sleep 0.1; apt_upgrades; } | PROGRESS_SECONDS=0 show_apt_progress "$scratch/log" 2> "$scratch/shown"
expect 'what apt-get shows of an upgrade' 6 "$(grep -c '^gpushare: .* of 2 packages$' "$scratch/shown")"
expect 'the lines of the log of apt-get' 8 "$(wc -l < "$scratch/log")"

# The steps of tools/package.sh that no build counts.
SECONDS=12
expect 'a step' 'gpushare: step 2 of 6, 12 s elapsed: the tarballs' "$(step 2 6 the tarballs 2>&1)"
expect 'a quiet step' '' "$(quiet=1 step 2 6 the tarballs 2>&1)"

program nvidia-smi <<'END'
printf "$FAKE_GPUS"
END
expect 'the architecture of two H200' '90a-real' "$(FAKE_GPUS='9.0\n9.0\n' architectures_here)"
expect 'the architectures of two models' '80-real;89-real' "$(FAKE_GPUS='8.9\n8.0\n' architectures_here)"
expect 'the architecture of a new model' '120-real' "$(FAKE_GPUS='12.0\n' architectures_here)"
expect 'the architecture of a GPU that says nothing' '90a-real' "$(FAKE_GPUS='[N/A]\n' architectures_here)"
program nvidia-smi <<'END'
exit 9
END
expect 'the architecture without a driver' '90a-real' "$(architectures_here)"
echo 'A build shows how far it is, and compiles kernels for the GPUs at hand.'

#!/bin/sh
# What a reservation runs: a login shell, and a new one when that ends, until the reservation does.
# The first member has the terminal; the others only hold their nodes. TERM ends each at once.

if ! [ -t 0 ]; then
    while command -p sleep 86400; do :; done
    exit 1
fi

# Each shell is a job of its own: whatever becomes of it, the next has the terminal again.
set -m
# Ctrl-C ends what runs, not the box. Programs inherit no handler, as they would an "ignore".
trap : INT QUIT
export TERM="${TERM:-xterm-256color}"

QUICK_S=1
QUICK_SHELLS=10
LONGEST_PAUSE_S=60

say() {
    printf '%s\n' "$*"
}

# Some shells leave a loop when a job in it was interrupted: between it and the loop is another.
apart() {
    /bin/sh -c 'set -m; trap : INT QUIT; "$@"; exit 0' box "$@"
}

now() {
    command -p date +%s 2>/dev/null || echo 0
}

banner() {
    say "odc reservation $ODC_JOB_ID (${SLURM_JOB_NAME:-})"
    if [ "${ODC_GPUS:-0}" = 0 ]; then
        say "  GPUs   none"
    elif [ "${ODC_NODE_COUNT:-1}" = 1 ]; then
        say "  GPUs   $ODC_GPUS ${ODC_GPU_TYPE:-} ($CUDA_VISIBLE_DEVICES)"
    else
        say "  GPUs   $ODC_GPUS ${ODC_GPU_TYPE:-} on each of $ODC_NODE_COUNT nodes; here ($CUDA_VISIBLE_DEVICES)"
    fi
    say "  nodes  ${ODC_NODELIST:-}"
    if [ -n "${SLURM_JOB_END_TIME:-}" ]; then
        say "  until  $(command -p date -d "@$SLURM_JOB_END_TIME" '+%Y-%m-%d %H:%M %Z'), unless it is extended"
    fi
    say "It goes on when a shell ends, and when you detach."
    say "More time: odcctl extend $ODC_JOB_ID. Its end: odcctl cancel $ODC_JOB_ID."
    say ""
}

banner
shell=${SHELL:-/bin/sh}
[ -x "$shell" ] || shell=/bin/sh
quick=0
while :; do
    if ! cd -- "${HOME:-/}" 2>/dev/null; then
        say "The home folder ${HOME:-} cannot be entered; this is /."
        cd /
    fi
    began=$(now)
    apart "$shell" -l
    if [ "$(($(now) - began))" -le "$QUICK_S" ]; then
        quick=$((quick + 1))
    else
        quick=0
    fi
    # It may have left the terminal in any state.
    command -p stty sane 2>/dev/null
    say "The shell has ended. Reservation $ODC_JOB_ID goes on; odcctl cancel $ODC_JOB_ID ends it."
    if [ "$quick" -ge "$QUICK_SHELLS" ]; then
        pause=$((quick - QUICK_SHELLS + 1))
        [ "$pause" -le "$LONGEST_PAUSE_S" ] || pause=$LONGEST_PAUSE_S
        say "$quick shells ended at once; the next one begins in $pause s."
        apart command -p sleep "$pause"
    fi
done

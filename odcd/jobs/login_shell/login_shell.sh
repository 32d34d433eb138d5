#!/bin/sh
# The program of a reservation: a login shell, which is started again when it ends. The first member has the
# terminal; the others only keep their nodes. TERM ends each of them immediately.

if ! [ -t 0 ]; then
    while command -p sleep 86400; do :; done
    exit 1
fi

# Each login shell is a job of this shell, so the next one gets the terminal back however the last one ended.
set -m
# Ctrl-C ends the running program, not the reservation. Programs inherit no handler, unlike an "ignore".
trap : INT QUIT
export TERM="${TERM:-xterm-256color}"

QUICK_S=1
QUICK_SHELLS=10
LONGEST_PAUSE_S=60

say() {
    printf '%s\n' "$*"
}

# Some shells leave a loop when a job in it is interrupted, so another shell runs between the job and the loop.
apart() {
    /bin/sh -c 'set -m; trap : INT QUIT; "$@"; exit 0' shell "$@"
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
    # The shell may have left the terminal in any state.
    command -p stty sane 2>/dev/null
    say "The shell has ended. Reservation $ODC_JOB_ID goes on; odcctl cancel $ODC_JOB_ID ends it."
    if [ "$quick" -ge "$QUICK_SHELLS" ]; then
        pause=$((quick - QUICK_SHELLS + 1))
        [ "$pause" -le "$LONGEST_PAUSE_S" ] || pause=$LONGEST_PAUSE_S
        say "$quick shells ended at once; the next one begins in $pause s."
        apart command -p sleep "$pause"
    fi
done

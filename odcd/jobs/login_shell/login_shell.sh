#!/bin/sh
# The program of a reservation: a login shell, and a new one when it exits, until the reservation ends.
# The first member has the terminal; the others only keep their nodes. TERM ends each one at once.

if ! [ -t 0 ]; then
    while command -p sleep 86400; do :; done
    exit 1
fi

# Each shell is a process group of its own, so the next one always gets the terminal.
set -m
# Ctrl-C ends the running program, not the dev server. A handler is not inherited; "ignore" would be.
trap : INT QUIT
export TERM="${TERM:-xterm-256color}"

QUICK_S=1
QUICK_SHELLS=10
LONGEST_PAUSE_S=60

say() {
    printf '%s\n' "$*"
}

# Some shells leave a loop if a job in it is interrupted, so another shell runs between them.
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
    say "The reservation continues when a shell exits and when you detach."
    say "To add hours: odcctl extend $ODC_JOB_ID. To end it: odcctl cancel $ODC_JOB_ID."
    say ""
}

banner
shell=${SHELL:-/bin/sh}
[ -x "$shell" ] || shell=/bin/sh
quick=0
while :; do
    if ! cd -- "${HOME:-/}" 2>/dev/null; then
        say "The home folder ${HOME:-} cannot be entered; the shell starts in /."
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
    say "The shell has exited. Reservation $ODC_JOB_ID continues; to end it: odcctl cancel $ODC_JOB_ID"
    if [ "$quick" -ge "$QUICK_SHELLS" ]; then
        pause=$((quick - QUICK_SHELLS + 1))
        [ "$pause" -le "$LONGEST_PAUSE_S" ] || pause=$LONGEST_PAUSE_S
        say "$quick shells exited at once; the next one starts in $pause s."
        apart command -p sleep "$pause"
    fi
done

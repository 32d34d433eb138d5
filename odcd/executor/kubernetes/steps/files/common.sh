# Shared by the programs of steps, which run in the pods' containers: any POSIX shell, and the commands of busybox or coreutils.
# The caller sets: step, the step's folder; mark, which its tasks have in their environment.

if command -v setsid >/dev/null 2>&1; then apart=1; else apart=; fi

pause() { sleep "$1" 2>/dev/null || sleep 1; }

# Sets stat to the fields after the name of a process: state, parent, group, session, ...; fails if it is gone.
read_stat() {
  stat=
  { IFS= read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
  stat=${stat##*) }
}

# Whether a process was started with the step's mark. `read` leaves out the NULs between variables.
is_marked() {
  text=
  {
    while IFS= read -r text || [ -n "$text" ]; do
      case $text in *"ODC_STEP_MARK=$mark;"*) return 0 ;; esac
      text=
    done <"/proc/$1/environ"
  } 2>/dev/null
  return 1
}

# Sets found to the processes of the step: its tasks, their descendants and sessions, and all that have its mark.
find_processes() {
  found=' ' sessions=' ' others=' ' ours= since=0
  { read -r ours since <"$step/session"; } 2>/dev/null
  for file in "$step"/pid.*; do
    pid=
    { read -r pid <"$file"; } 2>/dev/null || continue
    [ -z "$apart" ] || sessions="$sessions$pid "
    [ -e "$step/exit.${file##*.}" ] || ! read_stat "$pid" || found="$found$pid "
  done
  while :; do
    before=$found
    for file in /proc/[0-9]*; do
      pid=${file#/proc/}
      case $found$others in *" $pid "*) continue ;; esac
      read_stat "$pid" || continue
      set -- $stat
      case $1 in Z | X) others="$others$pid "; continue ;; esac
      case $found in *" $2 "*) found="$found$pid "; continue ;; esac
      case $sessions in *" $4 "*) found="$found$pid "; continue ;; esac
      case $seen in *" $pid "*) continue ;; esac
      seen="$seen$pid "
      # It began before the step. The tasks have sessions of their own, so the supervisor's has none of their processes.
      [ "${20}" -ge "$since" ] || continue
      if [ -n "$apart" ] && [ "$4" = "$ours" ]; then continue; fi
      ! is_marked "$pid" || found="$found$pid "
    done
    [ "$found" != "$before" ] || break
  done
}

# Sends a signal to the processes of the step; fails if there are none.
signal_step() {
  seen=' '
  find_processes
  [ "$found" != ' ' ] || return 1
  kill -s "$1" $found 2>/dev/null
  return 0
}

# Arguments: why, the signal, seconds until KILL. Returns at once.
stop_step() {
  [ ! -e "$step/end" ] || return 0
  [ -e "$step/stop" ] || { printf '%s\n' "$1" >"$step/stop.$$" && mv "$step/stop.$$" "$step/stop"; }
  signal_step "$2"
  signal_step CONT
  kill_later "$3" </dev/null >/dev/null 2>&1 &
}

# Whether the process that supervises the step lives.
is_supervised() {
  supervisor=
  { read -r supervisor <"$step/supervisor"; } 2>/dev/null && read_stat "$supervisor"
}

kill_later() {
  # The clock has whole seconds: no less than the grace.
  until=$(($(date +%s) + $1 + ($1 > 0)))
  while [ ! -e "$step/end" ]; do
    if [ "$(date +%s)" -ge "$until" ]; then
      signal_step KILL || is_supervised || return
    fi
    pause 0.2
  done
}

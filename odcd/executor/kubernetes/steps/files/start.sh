# Starts a step in this pod and supervises it until none of its processes is left. The caller sets, besides step and mark: tasks,
# the numbers of those in this pod; ends, when its time is over, or nothing; grace, seconds from TERM to KILL; dir and other_dir;
# mask; chunk and limit, see copy(); old, folders of earlier steps to remove; ranks; and functions: everything() and about() export
# variables, of all tasks and of one, streams() sets set_in, set_out and set_err of one (nothing: through odcd; input -: as it
# arrives), run() calls run_words with its words, and empty_files() empties files.
#
# Files in the folder: pid.T and exit.T of task T; o.T.N, e.T.N, its output and error from byte N on; m.T, messages for srun; i.N,
# input; stop, why the step is being ended; over, none of its processes is left; end, so are none of its files incomplete.

# Keep a stream in files of at most $chunk blocks, and no more than $limit bytes that no one has read. Arguments: o or e, the task.
copy() {
  at=0
  while :; do
    file=$1.$2.$at
    dd bs=4096 count="$chunk" >"$file" 2>/dev/null
    size=$(($(wc -c <"$file")))
    if [ "$size" -eq 0 ]; then
      rm -f "$file"
      break
    fi
    at=$((at + size))
    while [ ! -e over ]; do
      freed=0
      { read -r freed <"freed.$1.$2"; } 2>/dev/null
      [ $((at - freed)) -gt "$limit" ] || break
      pause 0.1
    done
  done
}

# Write the input to a task as it arrives. Argument: the task.
feed() {
  at=0
  while :; do
    last=
    [ ! -e i.end ] || last=1
    if [ -e "i.$at" ]; then
      cat "i.$at" 2>/dev/null || break
      at=$((at + $(wc -c <"i.$at")))
      printf '%s\n' "$at" >"fed.$1.new" && mv "fed.$1.new" "fed.$1"
    else
      [ -z "$last" ] && [ ! -e "exit.$1" ] || break
      pause 0.05
    fi
  done
  printf 'all\n' >"fed.$1.new" && mv "fed.$1.new" "fed.$1"
}

# Become a task. Its ends of pipes are 5 and 7, and 8 for its input.
become() {
  read -r pid others </proc/self/stat
  printf '%s\n' "$pid" >"pid.$1"
  trap - PIPE
  messages=$PWD/m.$1
  everything
  about "$1"
  export SLURM_TASK_PID="$pid" ODC_STEP_MARK="$mark;"
  [ ! -e stop ] || exit 143
  umask "$mask"
  cd "$dir" 2>/dev/null || cd "$other_dir" 2>/dev/null || {
    printf '%s\n' "couldn't chdir to \`$dir': going to /tmp instead" >>"$messages"
    cd /tmp || exit 1
  }
  export PWD
  run "$1"
}

# A redirection of `exec` that fails ends the shell, so it is tried before. Arguments: in, out or err; the file.
try_file() {
  if [ "$1" = in ]; then { true <"$2"; } 2>/dev/null; else { true >>"$2"; } 2>/dev/null; fi && return
  printf '%s\n' "Could not open std$1 file $2" >>"$messages"
  exit 1
}

# Arguments: the program and its own.
run_words() {
  command -v -- "$1" >/dev/null 2>&1 || {
    printf '%s\n' "execve(): $1: No such file or directory" >>"$messages"
    exit 2
  }
  case $set_in in
  -) exec <&8 ;;
  '') exec </dev/null ;;
  *) try_file in "$set_in" && exec <"$set_in" ;;
  esac
  if [ -z "$set_out" ]; then exec >&5; else try_file out "$set_out" && exec >>"$set_out"; fi
  if [ -z "$set_err" ]; then
    exec 2>&7
  elif [ "$set_err" = "$set_out" ]; then
    exec 2>&1
  else
    try_file err "$set_err" && exec 2>>"$set_err"
  fi
  exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
  if [ -n "$apart" ]; then exec setsid "$@"; else exec "$@"; fi
}

# Arguments: the name of a pipe, the descriptors of its two ends.
open_pipe() { eval "exec 3<>pipe.$1 $2<pipe.$1 $3>pipe.$1 3>&-"; }

# Arguments: the task, its exit code.
end_task() {
  printf '%s\n' "$2 $(date +%s)" >"exit.new.$1" && mv "exit.new.$1" "exit.$1"
  exec 5>&- 7>&- 8>&-
  wait
  exit
}

run_task() (
  # Closed by exec: shells only put aside what a redirection of a function replaces.
  streams "$1"
  if [ -z "$set_out" ]; then
    open_pipe "o.$1" 4 5
    (exec <&4 4>&- 5>&- && copy o "$1") &
    exec 4>&-
  fi
  if [ -z "$set_err" ]; then
    open_pipe "e.$1" 6 7
    (exec <&6 5>&- 6>&- 7>&- && copy e "$1") &
    exec 6>&-
  fi
  if [ "$set_in" = - ]; then
    open_pipe "i.$1" 8 9
    (exec >&9 5>&- 7>&- 8>&- 9>&- && feed "$1") &
    exec 9>&-
  fi
  (become "$1")
  end_task "$1" $?
)

# All at the same time. Not with &, which would make them ignore INT and QUIT forever in some shells.
run_all() {
  case $# in
  0) return ;;
  1) run_task "$1" ;;
  *) run_task "$1" | { shift; run_all "$@"; } ;;
  esac
}

# Whether all tasks have ended.
are_over() {
  for one in $tasks; do [ -e "exit.$one" ] || return 1; done
}

# Ends what outlives the tasks. Runs beside them, because the copies of their output end only after it.
end_leftovers() {
  wait_s=0.02
  until are_over; do
    pause "$wait_s"
    wait_s=0.1
    if [ -n "$ends" ] && [ ! -e stop ] && [ "$(date +%s)" -ge "$ends" ]; then stop_step timeout TERM "$grace"; fi
  done
  seen=' '
  if signal_step TERM; then
    until=$(($(date +%s) + 2))
    wait_s=0.01
    while signal_step 0; do
      pause "$wait_s"
      wait_s=0.1
      seen=' '
      [ "$(date +%s)" -lt "$until" ] || signal_step KILL
    done
  fi
  : >over
}

supervise() {
  trap '' PIPE
  read -r pid others </proc/self/stat
  printf '%s\n' "$pid" >supervisor.new && mv supervisor.new supervisor
  names= takers=
  for one in $tasks; do
    streams "$one"
    [ -n "$set_out" ] || names="$names pipe.o.$one"
    [ -n "$set_err" ] || names="$names pipe.e.$one"
    [ "$set_in" != - ] || names="$names pipe.i.$one" takers="$takers $one"
  done
  printf '%s\n' "$takers" >takers.new && mv takers.new takers
  [ -z "$names" ] || mkfifo -m 600 $names || : >stop
  end_leftovers &
  run_all $tasks
  wait
  [ -z "$names" ] || rm -f $names
  printf '%s\n' "$began $(date +%s)" >end.new && mv end.new end
}

start_step() {
  rm -rf $old
  umask 077
  mkdir "$step" 2>/dev/null || {
    [ -d "$step" ] || { printf 'cannot create %s\n' "$step" >&2; exit 1; }
    printf 'known\n'
    exit 0
  }
  cd "$step" || exit 1
  began=$(date +%s)
  read_stat $$ && set -- $stat && printf '%s\n' "$4 ${20}" >session
  printf '%s\n' "$mark" >mark
  printf '%s\n' "$ranks" >ranks
  printf '%s\n' "$tasks" >tasks
  printf '%s\n' $$ >supervisor
  (umask "$mask" && cd "$dir" && empty_files) 2>/dev/null
  printf 'started\n'
  exec </dev/null >/dev/null 2>trouble
  supervise | :
}

# Prints what happens in a step, from where an earlier connection stopped, until it is over. The caller sets step, tasks and keep,
# for each stream at_o_T or at_e_T, for messages at_m_T, and done_T for tasks whose end is known; owner, if read output may be
# removed. Each record is a line, and data for the first three:
#   o TASK BYTES, e TASK BYTES, m TASK BYTES   x TASK CODE SECONDS   s WHY   z BEGAN ENDED   l: the supervisor is gone
#   g: output is missing   . nothing happens

# Arguments: kind, task, file, where in the stream the file begins, its size.
follow_file() {
  eval "at=\${at_$1_$2:-0}"
  [ "$at" -ge "$4" ] && [ "$at" -lt $(($4 + $5)) ] || return
  busy=1
  skip=$((at - $4)) size=$(($4 + $5 - at))
  [ "$size" -le 1048576 ] || size=1048576
  printf '%s %s %s\n' "$1" "$2" "$size" || exit 1
  tail -c +$((skip + 1)) "$3" | head -c "$size"
  at=$((at + size))
  eval "at_$1_$2=$at"
}

# Remove what was read long ago: its reader may have died before it passed on the last bytes.
free_file() {
  eval "at=\${at_$1_$2:-0}"
  [ $(($4 + $5 + keep)) -le "$at" ] || return
  rm -f "$3"
  printf '%s\n' $(($4 + $5)) >"freed.$1.$2.new" && mv "freed.$1.$2.new" "freed.$1.$2"
}

list_files() { sizes=$(LC_ALL=C ls -ln 2>/dev/null); }

each_file() {
  while read -r mode links uid gid size month day hour name; do
    case $name in [oe].*.*) ;; m.*) name=$name.0 ;; *) continue ;; esac
    kind=${name%%.*} rest=${name#*.}
    task=${rest%%.*} begin=${rest#*.}
    case $task$begin in *[!0-9]*) continue ;; esac
    [ "$kind" = m ] && name=m.$task
    "$1" "$kind" "$task" "$name" "$begin" "$size"
  done <<END
$sizes
END
}

# For a reader that begins now: only what is printed from now on.
go_to_end() {
  eval "at=\${at_$1_$2:-0}"
  [ $(($4 + $5)) -le "$at" ] || eval "at_$1_$2=$(($4 + $5))"
}

# Sets first_K_T to where the oldest file of a stream begins.
find_first() {
  eval "first=\${first_$1_$2:-}"
  if [ -z "$first" ] || [ "$4" -lt "$first" ]; then eval "first_$1_$2=$4"; fi
}

is_missing() {
  eval "first=\${first_$1_$2:-0} at=\${at_$1_$2:-0}"
  [ "$first" -le "$at" ] || { printf 'g\n'; exit 0; }
}

follow_step() {
  cd "$step" 2>/dev/null || { printf 'l\n'; exit 0; }
  list_files
  if [ -z "$owner" ]; then each_file go_to_end; else
    each_file find_first
    each_file is_missing
  fi
  told= idle=0
  while :; do
    busy= over= gone=
    if [ -e end ]; then over=1; elif ! is_supervised; then gone=1; fi
    if [ -z "$told" ] && [ -e stop ]; then
      told=1 busy=1
      read -r why <stop
      printf 's %s\n' "$why" || exit 1
    fi
    ends=
    for task in $tasks; do
      eval "known=\${done_$task:-}"
      [ -z "$known" ] && [ -e "exit.$task" ] || continue
      read -r code seconds <"exit.$task"
      eval "done_$task=1"
      ends="${ends}x $task $code $seconds
"
    done
    list_files
    each_file follow_file
    if [ -n "$ends" ]; then
      busy=1
      printf %s "$ends" || exit 1
    fi
    if [ -n "$busy" ]; then
      idle=0
      [ -z "$owner" ] || each_file free_file
      continue
    fi
    if [ -n "$over" ]; then
      read -r began ended <end
      printf 'z %s %s\n' "$began" "$ended"
      exit 0
    fi
    [ -z "$gone" ] || [ -e end ] || { printf 'l\n'; exit 0; }
    idle=$((idle + 1))
    if [ "$idle" -lt 10 ]; then pause 0.03; elif [ "$idle" -lt 40 ]; then pause 0.1; else pause 0.3; fi
    [ $((idle % 30)) -ne 0 ] || printf '.\n' || exit 1
  done
}

# Prints how far a step is, without output: known and all ranks, t and the tasks here, and the records x, s, z or l.
look_at_step() {
  cd "$step" 2>/dev/null || { printf 'none\n'; exit 0; }
  [ -e end ] && over=1 || over=
  read -r ranks <ranks
  printf 'known %s\n' "$ranks"
  read -r tasks <tasks
  printf 't %s\n' "$tasks"
  for task in $tasks; do
    [ -e "exit.$task" ] || continue
    read -r code seconds <"exit.$task"
    printf 'x %s %s %s\n' "$task" "$code" "$seconds"
  done
  if [ -e stop ]; then
    read -r why <stop
    printf 's %s\n' "$why"
  fi
  if [ -n "$over" ]; then
    read -r began ended <end
    printf 'z %s %s\n' "$began" "$ended"
    exit 0
  fi
  is_supervised || [ -e end ] || printf 'l\n'
}

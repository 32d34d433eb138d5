# Prints the calls that client.sh leaves, until the connection ends:
#   c CALL BYTES BYTES BYTES NO_INPUT POSITION_BYTES NEXT, a line about it, its folder, and argv, environment and the last position
#   k CALL SIGNAL   i CALL BEGIN BYTES, and input   f CALL BYTES, and a file   d CALL: the client is gone   . nothing happens

size_of() { if [ -e "$1" ]; then printf '%s' $(($(wc -c <"$1"))); else printf 0; fi; }

announce() {
  last=$1/position
  for piece in "$1"/[0-9]*; do
    [ -e "$piece/position" ] || continue
    if [ ! -e "$last" ]; then last=$piece/position; continue; fi
    read -r old rest <"$last"
    read -r new rest <"$piece/position"
    [ "$new" -le "$old" ] || last=$piece/position
  done
  reached=-1
  [ ! -e "$last" ] || read -r reached rest <"$last"
  [ -e "$1/no_input" ] && quiet=1 || quiet=0
  read -r about <"$1/about"
  read -r folder <"$1/folder"
  printf 'c %s %s %s %s %s %s\n%s\n%s\n' "$2" "$(size_of "$1/argv")" "$(size_of "$1/environment")" "$quiet" \
    "$(size_of "$last")" "$reached" "$about" "$folder" || exit 1
  cat "$1/argv" "$1/environment"
  [ ! -e "$last" ] || cat "$last"
}

look_at_call() {
  number=${1##*.}
  case $seen in *" $number "*) ;; *)
    seen="$seen$number " busy=1
    announce "$1" "$number"
    ;;
  esac
  if [ -s "$1/signals" ]; then
    mv "$1/signals" "$1/signals.old"
    while read -r signal; do printf 'k %s %s\n' "$number" "$signal"; done <"$1/signals.old"
    busy=1
  fi
  for piece in "$1"/in.*; do
    [ -e "$piece" ] || continue
    printf 'i %s %s %s\n' "$number" "${piece##*.}" "$(size_of "$piece")" || exit 1
    cat "$piece" && rm -f "$piece"
    busy=1
  done
  if [ -e "$1/file" ]; then
    printf 'f %s %s\n' "$number" "$(size_of "$1/file")" || exit 1
    cat "$1/file" && rm -f "$1/file"
    busy=1
  fi
  if ! read_stat "$number"; then
    printf 'd %s\n' "$number" || exit 1
    rm -rf "$1"
  fi
}

listen() {
  mkdir -p /odc/run/calls 2>/dev/null
  seen=' ' idle=0
  while :; do
    busy= there=' '
    for call in /odc/run/calls/call.*; do
      [ -d "$call" ] || continue
      there="$there${call##*.} "
      look_at_call "$call" 2>/dev/null
    done
    kept=' '
    for number in $seen; do
      case $there in *" $number "*) kept="$kept$number " ;; esac
    done
    seen=$kept
    if [ -n "$busy" ]; then idle=0; else
      idle=$((idle + 1))
      pause 0.1
      [ $((idle % 100)) -ne 0 ] || printf '.\n' || exit 1
    fi
  done
}

# Prints a part of the texts. Arguments: where it begins, its length.
cut_text() { tail -c +$(($1 + 1)) texts | head -c "$2"; }

# Puts what a call prints into its folder. Reads lines, each with a number, the lengths of output, error, position and need, an exit
# code or -, and 1 if it wants input; then these texts. Answers with a line once there is room for more: ok, or gone.
give_call() {
  cd "/odc/run/calls/call.$1" 2>/dev/null || { printf 'gone\n'; exit 0; }
  printf 'ready\n'
  while read -r number out err position need code input; do
    rm -rf piece.new
    mkdir piece.new 2>/dev/null || { printf 'gone\n'; exit 0; }
    # At once: some programs read more of their input than they need.
    head -c $((out + err + position + need)) >texts
    cut_text 0 "$out" >piece.new/out
    cut_text "$out" "$err" >piece.new/err
    cut_text $((out + err)) "$position" >piece.new/position
    [ "$need" -eq 0 ] || cut_text $((out + err + position)) "$need" >piece.new/need
    [ "$code" = - ] || printf '%s\n' "$code" >piece.new/code
    [ "$input" = 0 ] || : >piece.new/input
    # If it has arrived before, the call may be reading it.
    [ -d "$number" ] || mv piece.new "$number" 2>/dev/null || { printf 'gone\n'; exit 0; }
    while set -- [0-9]* && [ $# -gt 8 ]; do
      [ -e about ] || break
      pause 0.05
    done
    printf 'ok\n'
  done
}

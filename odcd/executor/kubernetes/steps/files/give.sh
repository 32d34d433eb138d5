# Takes pieces of a step's input: a line with where the piece begins and its length, then the piece; length 0 is the end. Answers
# each with a line: how much of the input has arrived, `full` or `over`. The caller sets step. Begins with `ready`, or with `none` if no
# task here takes input.
give_input() {
  cd "$step" 2>/dev/null || { printf 'over\n'; exit 0; }
  until [ -e takers ]; do
    [ ! -e end ] || { printf 'over\n'; exit 0; }
    pause 0.05
  done
  read -r takers <takers
  [ -n "$takers" ] || { printf 'none\n'; exit 0; }
  received=0
  { read -r received <received; } 2>/dev/null
  printf 'ready\n'
  while read -r begin length; do
    if [ -e end ] || [ -e over ]; then
      head -c "$length" >/dev/null
      printf 'over\n'
      continue
    fi
    least=$received
    for file in fed.*; do
      case $file in 'fed.*' | *.new) continue ;; esac
      read -r fed <"$file"
      [ "$fed" = all ] || [ "$fed" -ge "$least" ] || least=$fed
    done
    for task in $takers; do [ -e "fed.$task" ] || least=0; done
    for file in i.*; do
      at=${file#i.}
      case $at in '*' | *[!0-9]*) continue ;; esac
      [ "$at" -ge "$least" ] || [ $((at + $(wc -c <"$file"))) -gt "$least" ] || rm -f "$file"
    done
    if [ "$length" -eq 0 ]; then
      [ "$begin" -ne "$received" ] || : >i.end
    else
      head -c "$length" >new.i
      if [ $((received - least)) -gt 4194304 ]; then
        printf 'full\n'
        continue
      fi
      if [ "$begin" -eq "$received" ]; then
        received=$((received + length))
        mv new.i "i.$begin"
        printf '%s\n' "$received" >received.new && mv received.new received
      fi
    fi
    printf '%s\n' "$received"
  done
}

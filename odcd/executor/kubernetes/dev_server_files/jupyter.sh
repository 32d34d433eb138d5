#!/bin/sh
# Jupyter Lab of a dev server, on port 8888, always with a token.
#   begin   at the start of rank 0's container: the last on or off applies, otherwise the reservation's request
#   on, off from now on. If it fails, the user sees its error output
#   run     as dev: starts it, and restarts it when it ends
set -u
umask 022
job=/odc/job keys=/odc/keys run=/odc/run etc=/etc/odc home=/home/dev workspace=/workspace
log=$run/jupyter.log token=$etc/jupyter_token
# These files are deleted with the container, so no process id of an earlier container is read.
pidfile=$etc/jupyter.pid begun=$etc/jupyter.begun lock=$etc/jupyter.lock
port=8888 port_hex=22B8
WAIT_S=40

say() { printf '%s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }
listens() { grep -qs ":$port_hex [0-9A-F]*:0000 0A " /proc/net/tcp /proc/net/tcp6; }
# Print when process $1 began, in clock ticks since boot; nothing if it has ended. Process ids are reused, so an id alone
# does not identify Jupyter. Nor does a command line: it is empty for a moment while a process executes a program.
began_at() {
  read -r line 2>/dev/null <"/proc/$1/stat" || return 1
  # The name before the last bracket may have spaces.
  set -- ${line##*) }
  [ "$1" != Z ] && printf '%s' "${20}"
}
lives() {
  read -r pid ticks 2>/dev/null <"$pidfile" && [ -n "$ticks" ] && [ "$(began_at "$pid")" = "$ticks" ]
}
# A lock: a restarted container and odc, which notices the restart, may both start it. Without the lock there
# would be two, and only one of them would be stopped later.
take_turn() {
  has flock || return 0
  exec 9>"$lock" && flock -w "$WAIT_S" 9
}
end_turn() { exec 9>&-; }
# Wait until the start program has made the user; nothing can be started before.
await_begin() {
  left=$((WAIT_S * 2))
  until [ -e "$begun" ]; do
    [ "$left" -gt 0 ] || return 1
    left=$((left - 1))
    sleep 0.5
  done
}
# The last line of the log.
last() { grep -v '^[[:space:]]*$' "$log" 2>/dev/null | tail -n 1; }

start() {
  if lives; then return 0; fi
  if listens; then
    say "another program in the dev server uses port $port: stop it, or use that program"
    return 1
  fi
  [ -f "$keys/jupyter" ] || { say "this dev server was created without a token for Jupyter Lab: reserve another one"; return 1; }
  rm -f "$token" "$log"
  (umask 077 && cat "$keys/jupyter" >"$token") && chown dev "$token" && chmod 400 "$token" || return 1
  gid=$(id -g dev)
  if setpriv --reuid=dev --regid="$gid" --init-groups true 2>/dev/null; then
    setpriv --reuid=dev --regid="$gid" --init-groups /bin/sh "$job/jupyter" run </dev/null >"$log" 2>&1 9>&- &
  else
    su -s /bin/sh -c 'exec /bin/sh /odc/job/jupyter run' dev </dev/null >"$log" 2>&1 9>&- &
  fi
  printf '%s %s\n' "$!" "$(began_at "$!")" >"$pidfile"
}

stop() {
  signal=TERM left=20
  while lives; do
    kill -s "$signal" "$pid" 2>/dev/null
    left=$((left - 1))
    [ "$left" -gt 0 ] || signal=KILL
    [ "$left" -gt -10 ] || { say "it does not stop"; return 1; }
    sleep 0.5
  done
  rm -f "$pidfile" "$token"
}

case ${1-} in
  begin)
    [ "${MULTINODE_RANK:-0}" = 0 ] || exit 0
    take_turn
    : >"$begun"
    wish=$job/jupyter_wish
    [ ! -f "$run/jupyter" ] || wish=$run/jupyter
    ! grep -qsx on "$wish" || start
    ;;
  on)
    printf 'on\n' >"$run/jupyter"
    await_begin || { say "the dev server is restarting and was not ready within $WAIT_S s"; exit 1; }
    take_turn || { say "another start of it has not finished within $WAIT_S s"; exit 1; }
    start || exit 1
    end_turn
    left=$((WAIT_S * 2))
    until listens; do
      lives || { last >&2; exit 1; }
      [ "$left" -gt 0 ] || { say "it did not answer on port $port within $WAIT_S s: $(last)"; exit 1; }
      left=$((left - 1))
      sleep 0.5
    done
    ;;
  off)
    printf 'off\n' >"$run/jupyter"
    # If the container starts after this, it reads the file above and does not start Jupyter.
    await_begin || exit 0
    take_turn || { say "a start of it has not finished within $WAIT_S s"; exit 1; }
    stop
    ;;
  run)
    if [ "${2-}" != again ]; then
      # The environment of SSH sessions.
      while IFS= read -r line; do set -- "$@" "$line"; done <"$home/.ssh/environment"
      shift
      exec env "$@" HOME="$home" USER=dev LOGNAME=dev /bin/sh "$0" run again
    fi
    PATH=${PATH:-/usr/bin:/bin}:$home/.local/bin JUPYTER_TOKEN_FILE=$token
    export PATH JUPYTER_TOKEN_FILE
    has jupyter || {
      say "there is no jupyter on its PATH: run pip install jupyterlab inside, then enable it again"
      exit 127
    }
    cd "$workspace" || exit 1
    stopping='' child='' short=0
    trap 'stopping=1; [ -z "$child" ] || { kill -TERM "$child"; (sleep 8; kill -KILL "$child") & } 2>/dev/null' TERM INT HUP
    while :; do
      began=$(date +%s)
      jupyter lab --no-browser --config="$job/jupyter_config.py" --ip=0.0.0.0 --port="$port" \
        --ServerApp.port_retries=0 --ServerApp.root_dir="$workspace" &
      child=$!
      while :; do
        wait "$child"
        code=$?
        kill -0 "$child" 2>/dev/null || break
      done
      [ -z "$stopping" ] || exit 0
      [ $(($(date +%s) - began)) -lt 30 ] && short=$((short + 1)) || short=0
      [ "$short" -lt 3 ] || exit "$code"
      sleep 1
    done
    ;;
  *) say "the argument must be begin, on or off"; exit 2 ;;
esac

#!/bin/sh
# Jupyter Lab of a dev server, on port 8888, never without its token.
#   begin   as the container begins, in the first of several: as it was told last, else as it was asked for
#   on, off from now on. What it says when it fails is told to the user
#   run     as dev: keeps it up
set -u
umask 022
job=/odc/job keys=/odc/keys run=/odc/run etc=/etc/odc home=/home/dev workspace=/workspace
log=$run/jupyter.log token=$etc/jupyter_token
# They go with the container: no number of a process of the one before is read here.
pidfile=$etc/jupyter.pid begun=$etc/jupyter.begun lock=$etc/jupyter.lock
port=8888 port_hex=22B8
WAIT_S=40

say() { printf '%s\n' "$*" >&2; }
has() { command -v "$1" >/dev/null 2>&1; }
listens() { grep -qs ":$port_hex [0-9A-F]*:0000 0A " /proc/net/tcp /proc/net/tcp6; }
# Numbers of processes come again: it is one of ours by what it runs.
lives() { read -r pid 2>/dev/null <"$pidfile" && grep -qs "$job/jupyter" "/proc/$pid/cmdline"; }
# One at a time. Both the container that begins anew and odc, which sees that, start it: each by itself would
# start one, and only one of them would end later.
take_turn() {
  has flock || return 0
  exec 9>"$lock" && flock -w "$WAIT_S" 9
}
end_turn() { exec 9>&-; }
# Nothing can be started before: there may be no user yet.
await_begin() {
  left=$((WAIT_S * 2))
  until [ -e "$begun" ]; do
    [ "$left" -gt 0 ] || return 1
    left=$((left - 1))
    sleep 0.5
  done
}
# The last thing that it wrote.
last() { grep -v '^[[:space:]]*$' "$log" 2>/dev/null | tail -n 1; }

start() {
  if lives; then return 0; fi
  if listens; then
    say "another program in the dev server has port $port: end it, or use that one"
    return 1
  fi
  [ -f "$keys/jupyter" ] || { say "this dev server was made without a token for it: reserve another"; return 1; }
  rm -f "$token" "$log"
  (umask 077 && cat "$keys/jupyter" >"$token") && chown dev "$token" && chmod 400 "$token" || return 1
  gid=$(id -g dev)
  if setpriv --reuid=dev --regid="$gid" --init-groups true 2>/dev/null; then
    setpriv --reuid=dev --regid="$gid" --init-groups /bin/sh "$job/jupyter" run </dev/null >"$log" 2>&1 9>&- &
  else
    su -s /bin/sh -c 'exec /bin/sh /odc/job/jupyter run' dev </dev/null >"$log" 2>&1 9>&- &
  fi
  printf '%s\n' "$!" >"$pidfile"
}

stop() {
  signal=TERM left=20
  while lives; do
    kill -s "$signal" "$pid" 2>/dev/null
    left=$((left - 1))
    [ "$left" -gt 0 ] || signal=KILL
    [ "$left" -gt -10 ] || { say "it does not end"; return 1; }
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
    await_begin || { say "the dev server begins anew, and is not ready after $WAIT_S s"; exit 1; }
    take_turn || { say "another start of it has not ended for $WAIT_S s"; exit 1; }
    start || exit 1
    end_turn
    left=$((WAIT_S * 2))
    until listens; do
      lives || { last >&2; exit 1; }
      [ "$left" -gt 0 ] || { say "it has not answered on port $port for $WAIT_S s: $(last)"; exit 1; }
      left=$((left - 1))
      sleep 0.5
    done
    ;;
  off)
    printf 'off\n' >"$run/jupyter"
    # It is not started either, if the container begins later than that.
    await_begin || exit 0
    take_turn || { say "a start of it has not ended for $WAIT_S s"; exit 1; }
    stop
    ;;
  run)
    if [ "${2-}" != again ]; then
      # What sessions have.
      while IFS= read -r line; do set -- "$@" "$line"; done <"$home/.ssh/environment"
      shift
      exec env "$@" HOME="$home" USER=dev LOGNAME=dev /bin/sh "$0" run again
    fi
    PATH=${PATH:-/usr/bin:/bin}:$home/.local/bin JUPYTER_TOKEN_FILE=$token
    export PATH JUPYTER_TOKEN_FILE
    has jupyter || {
      say "there is no jupyter on its PATH: pip install jupyterlab inside, and ask for it again"
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
  *) say "it takes begin, on or off"; exit 2 ;;
esac

# The members' addresses, which are only known once their pods exist.
if [ -n "${MULTINODE_HOSTS-}" ]; then
  MULTINODE_IPS=''
  for host in $(printf '%s' "$MULTINODE_HOSTS" | tr ',' ' '); do
    address=$(getent hosts "$host" 2>/dev/null | { read -r first rest; printf '%s' "${first-}"; })
    MULTINODE_IPS=$MULTINODE_IPS${MULTINODE_IPS:+,}$address
  done
  MASTER_IP=${MULTINODE_IPS%%,*}
  export MULTINODE_IPS MASTER_IP
  unset host address
fi

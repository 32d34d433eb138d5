"""The scripts of `odcd demo`: small, real, and finished in seconds."""

SCRIPTS = {
    "sweep.sh": """#!/bin/bash
#SBATCH --output=sweep-%a.out
# One step of a parameter sweep: integrate x^n over [0,1] by the midpoint rule.
sleep 4
awk -v n="$SLURM_ARRAY_TASK_ID" 'BEGIN {
    for (i = 0; i < 200000; i++) s += ((i + 0.5) / 200000) ^ n
    printf "integral of x^%d is %.6f, exact %.6f\\n", n, s / 200000, 1 / (n + 1)
}'
""",
    "gang.sh": """#!/bin/bash
#SBATCH --output=gang-%j-%t.out
#ODC --launch=all
# Two nodes, started together: rank 0 gathers what the others computed.
export SHARE=$(seq 1 $((SLURM_PROCID * 1000 + 1000)) | awk '{ s += $1 } END { print s }')
python3 - <<'PY'
import os, socket, time
rank, size = int(os.environ["ODC_RANK"]), int(os.environ["SLURM_NNODES"])
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
share = int(os.environ["SHARE"])
print(f"rank {rank} of {size} on {os.environ['SLURMD_NODENAME']}, "
      f"GPUs {os.environ['CUDA_VISIBLE_DEVICES']}: {share}")
if rank == 0:
    with socket.create_server(address) as server:
        for _ in range(size - 1):
            peer, _ = server.accept()
            share += int(peer.makefile().readline())
    print(f"together: {share}")
else:
    for _ in range(100):
        try:
            with socket.create_connection(address) as master:
                master.sendall(f"{share}\\n".encode())
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
PY
""",
    "primes.sh": """#!/bin/bash
#SBATCH --output=primes-%A_%a.out
limit=$((SLURM_ARRAY_TASK_ID * 2000))
awk -v n=$limit 'BEGIN {
    for (i = 2; i <= n; i++) if (!c[i]) { p++; for (j = i * i; j <= n; j += i) c[j] = 1 }
    printf "%d primes up to %d\\n", p, n
}'
""",
    "prepare.sh": """#!/bin/bash
seq 1 5000 | awk '{ print $1, 3 * $1 + 7 + ($1 * 7919 % 13 - 6) / 10 }' > data.txt
wc -l data.txt
""",
    "train.sh": """#!/bin/bash
# Least squares over the prepared data.
echo "GPUs: $CUDA_VISIBLE_DEVICES"
awk '{ n++; x += $1; y += $2; xx += $1 * $1; xy += $1 * $2 }
     END { a = (n * xy - x * y) / (n * xx - x * x); print a, (y - a * x) / n }' data.txt > model.txt
""",
    "report.sh": """#!/bin/bash
read -r slope offset < model.txt
echo "the data follows y = $slope x + $offset"
""",
    "typo.sh": """#!/bin/bash
cat the-file-that-is-not-there.txt
exit 3
""",
    "endless.sh": """#!/bin/bash
# Longer than its limit of three seconds.
while true; do sleep 1; done
""",
}

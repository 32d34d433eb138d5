#!/bin/bash
#SBATCH --job-name=trainer-0 --requeue --time=2-00:00:00 --ntasks-per-node=1 --cpus-per-task=8 --mem=65536 --gpus-per-node=a100:2

set -evx
srun --wait=60 --kill-on-bad-exit=1 python train.py

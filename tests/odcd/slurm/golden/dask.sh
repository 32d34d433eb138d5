#!/usr/bin/env bash

#SBATCH -J dask-worker
#SBATCH -e logs/dask-worker-%J.err
#SBATCH -o logs/dask-worker-%J.out
#SBATCH -p main
#SBATCH -n 1
#SBATCH --cpus-per-task=4
#SBATCH --mem=2G
#SBATCH -t 00:30:00

python -m distributed.cli.dask_worker tcp://10.0.0.1:8786

#!/bin/bash

# Parameters
#SBATCH --array=0-4%4
#SBATCH --cpus-per-task=4
#SBATCH --error='/shared/a b/%A_%a_0_log.err'
#SBATCH --gpus-per-node=1
#SBATCH --job-name=submitit
#SBATCH --mem=200MB
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --open-mode=append
#SBATCH --output='/shared/a b/%A_%a_0_log.out'
#SBATCH --signal=USR2@90
#SBATCH --time=5

# command
export SUBMITIT_EXECUTOR=slurm
srun --unbuffered --output /shared/log python -u -m submitit.core._submit /shared/folder

#!/bin/bash
#SBATCH --job-name=gpt-pretrain        # a multi-node pretraining run
#SBATCH --partition=h100,main
#SBATCH --account=nlp@gpu
#SBATCH --qos=high
#SBATCH --nodes=16
#SBATCH --ntasks-per-node=1            # crucial: one launcher on each node
#SBATCH --cpus-per-task=96
#SBATCH --gres=gpu:8
#SBATCH --exclusive
#SBATCH --constraint=h100
#SBATCH --time 20:00:00
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
##SBATCH --reservation=not-now

set -x -e
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun torchrun --nnodes "$SLURM_NNODES" pretrain.py

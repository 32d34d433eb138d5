#!/bin/sh

#SBATCH --array             2-7:2
#SBATCH --cpus-per-task     15
#SBATCH --dependency        afterok:123:124,afterany:99
#SBATCH --job-name          simple
#SBATCH --output            %A_%a.out
#SBATCH --time              1-02:03:04
#SBATCH --begin             2026-06-01T08:00:00

python demo.py

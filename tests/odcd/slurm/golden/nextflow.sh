#!/bin/bash
#SBATCH -J nf-ALIGN_(sample_1)
#SBATCH -o /scratch/3f/c0ffee/.command.log
#SBATCH --no-requeue
#SBATCH --signal B:USR2@30
#SBATCH -c 2
#SBATCH -t 01:30:00
#SBATCH --mem 4096M
#SBATCH -p main
# NEXTFLOW TASK: ALIGN (sample_1)
set -e
set -u

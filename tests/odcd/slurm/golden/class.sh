#!/bin/bash -l
#ODC --partition=l4 --hold
#SBATCH -N1 -n2 -G l4:2 --mem-per-gpu=24G	# a tab before this
#SBATCH --export="ALL,OMP_NUM_THREADS=4,LAYERS='3,4,5'"
#SBATCH --nodelist=gpu[01-02] --exclude="gpu03"
#SBATCH --comment="exercise #3"
#SBATCH --nice=50 --deadline=2026-07-01
echo "hello from $(hostname)"

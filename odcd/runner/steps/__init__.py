"""Job steps: the tasks that srun starts on the nodes of a running job."""

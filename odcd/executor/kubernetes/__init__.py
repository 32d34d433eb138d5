"""Runs jobs as pods: kubelet, the scheduler and device plugins stay in charge of the nodes."""

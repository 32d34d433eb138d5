"""Job steps in pods: programs for /bin/sh that pods/exec starts in the containers of a job."""

"""How jobs run: on this machine or in a Kubernetes cluster."""

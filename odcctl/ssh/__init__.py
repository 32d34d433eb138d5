"""SSH to dev servers: configuration files for ssh, tunnels and forwarded ports."""

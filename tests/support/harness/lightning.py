"""A script that uses Lightning's SLURMEnvironment, from its published file."""

SCRIPT = """
import importlib.util, os, socket, sys, types

# The packages above the file, without running their __init__, which imports torch.
root = importlib.util.find_spec("lightning_fabric").submodule_search_locations[0]
for name in ("", ".plugins", ".plugins.environments", ".utilities"):
    package = types.ModuleType(f"lightning_fabric{name}")
    package.__path__ = [os.path.join(root, *name.split("."))]
    sys.modules[package.__name__] = package
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment

assert SLURMEnvironment.detect()
here = SLURMEnvironment()
here.validate_settings(num_devices=1, num_nodes=2)
place = (here.main_address, here.main_port)
if here.global_rank() == 0:
    with socket.create_server(place) as server:
        total = 0
        for _ in range(here.world_size() - 1):
            other, _ = server.accept()
            total += int(other.makefile().readline())
else:
    while True:
        try:
            other = socket.create_connection(place)
            break
        except ConnectionRefusedError:
            pass
    other.sendall(f"{here.global_rank()}\\n".encode())
    total = here.global_rank()
ranks = (here.global_rank(), here.local_rank(), here.node_rank())
print(here.job_name(), here.world_size(), *ranks, total)
"""

"""The image of dev servers has everything that users of gpu-dev rely on, as far as its recipe
shows.

The last step of the recipe checks the installed programs (check.sh), so an incomplete image is
never built. Here the recipe and the check are compared with the inventory's list.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "k8s" / "images" / "dev"
DOCKERFILE = (FOLDER / "Dockerfile").read_text()
LOCK = (FOLDER / "python.lock").read_text()
CHECK = (FOLDER / "check.sh").read_text()

# The items of the inventory, by the step that installs them and the check for them.
APT: dict[str, str] = {
    "bash-completion": "bash_completion", "ccache": "ccache", "curl": "curl", "git": "git",
    "htop": "htop", "nano": "nano", "neovim": "nvim", "openssh-server": "sshd", "sudo": "sudo",
    "tmux": "tmux", "tree": "tree", "vim": "vim", "wget": "wget", "zsh": "zsh",
    "zsh-autosuggestions": "zsh-autosuggestions.zsh",
    "zsh-syntax-highlighting": "zsh-syntax-highlighting.zsh",
    "cuda-nsight-compute-12-8": "ncu", "cuda-nsight-systems-12-8": "nsys",
    "cuda-toolkit-13-0": "$CUDA_13_PATH/bin/nvcc",
}  # fmt: skip
PYTHON: dict[str, str] = {
    "ipywidgets": "ipywidgets", "jupyterlab": "jupyterlab", "matplotlib": "matplotlib",
    "numpy": "numpy", "pandas": "pandas", "plotly": "plotly", "scikit-learn": "sklearn",
    "seaborn": "seaborn", "tensorboard": "tensorboard",
}  # fmt: skip
OTHERS: dict[str, tuple[str, str]] = {
    "PyTorch": ("torch==2.9.1", "torch-2.9.1"),
    "CUDA 12.8 with cuDNN": ("nvidia/cuda:12.8.1-cudnn-devel", "/usr/include/cudnn.h"),
    "Node.js 20": ("library/node:20.", "v20.*"),
    "Claude Code": ("@anthropic-ai/claude-code@", "claude"),
    "oh-my-zsh": ("ohmyzsh/ohmyzsh.git#", "oh-my-zsh.sh"),
    "libfabric": ("aws-efa-installer-", "libfabric"),
    "OpenMPI": ("/opt/amazon/openmpi/bin", "mpirun"),
    "aws-ofi-nccl": ("aws-efa-installer-", "aws-ofi-nccl"),
    "nccl-tests": ("NVIDIA/nccl-tests.git#v", "all_reduce_perf"),
}  # fmt: skip


def steps() -> list[str]:
    """The RUN instructions, each as one line."""
    joined = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", DOCKERFILE, flags=re.M))
    return re.findall(r"^RUN (.*)$", joined, re.M)


@pytest.mark.parametrize("package", APT)
def test_every_package_is_installed_and_looked_for(package: str) -> None:
    installed = {word for step in steps() if "apt-get install" in step for word in step.split()}
    assert package in installed
    assert APT[package] in CHECK


@pytest.mark.parametrize("package", PYTHON)
def test_every_python_package_is_pinned_and_looked_for(package: str) -> None:
    assert re.search(rf"^{package}==\S+ .*?\\\n +--hash=sha256:", LOCK, re.M)
    assert re.search(rf"\b{PYTHON[package]}\b", CHECK)


@pytest.mark.parametrize("name", OTHERS)
def test_everything_else_is_there_by_a_version(name: str) -> None:
    installed, looked_for = OTHERS[name]
    assert installed in DOCKERFILE
    assert looked_for in CHECK


def test_both_cudas_are_there_and_the_older_is_the_default() -> None:
    variables = dict(re.findall(r"\b(\w+)=(\S+)", DOCKERFILE))
    assert variables["CUDA_12_PATH"] == variables["CUDA_HOME"] == "/usr/local/cuda-12.8"
    assert variables["CUDA_13_PATH"] == "/usr/local/cuda-13.0"
    assert variables["CCACHE_DIR"] == "/ccache_shared"
    assert "ln -s /ccache_shared /ccache" in DOCKERFILE
    [toolkits] = [step for step in steps() if "cuda-toolkit-13-0" in step]
    # After the toolkit, which would point it to itself.
    assert toolkits.index("ln -sfn /usr/local/cuda-12.8 /usr/local/cuda") > toolkits.index(
        "cuda-toolkit-13-0"
    )
    assert '"$(readlink -f /usr/local/cuda)" = /usr/local/cuda-12.8' in CHECK


def test_the_dev_user_has_its_uid_and_sudo() -> None:
    assert re.search(r"useradd --uid 1081 .*--shell /usr/bin/zsh dev\b", DOCKERFILE)
    assert "dev ALL=(ALL:ALL) NOPASSWD:ALL" in DOCKERFILE
    assert '"$(id -u dev)" = 1081' in CHECK


def test_apt_is_updated_in_the_layer_that_installs() -> None:
    """IMG-16"""
    of_apt = [step for step in steps() if "apt-get" in step]
    assert len(of_apt) == 3
    for step in of_apt:
        assert step.count("apt-get update") == 1
        assert "rm -rf" in step
        assert "/var/lib/apt/lists/*" in step


def test_the_image_is_built_for_named_platforms() -> None:
    """IMG-16, IMG-17: nodes of arm64 have an image of their own, without CUDA."""
    assert "--platform linux/amd64 " in DOCKERFILE
    assert "FROM base-${TARGETARCH}" in DOCKERFILE
    stages = re.findall(r"^FROM (\S+) AS base-(\w+)", DOCKERFILE, re.M)
    assert {arch: "cuda" in image for image, arch in stages} == {"amd64": True, "arm64": False}
    page = (FOLDER.parents[2] / "docs" / "operating" / "kubernetes.md").read_text()
    assert "--platform linux/amd64,linux/arm64" in page


def test_every_base_image_and_download_is_pinned() -> None:
    """IMG-15: every base image, archive and repository has a version."""
    for image in re.findall(r"^FROM (\S+)", DOCKERFILE, re.M):
        assert re.search(r":[\w.-]*\d", image) or image == "base-${TARGETARCH}", image
    for source in re.findall(r"^ADD (https://\S+)", DOCKERFILE, re.M):
        assert re.search(r"#(v[\d.]+|[0-9a-f]{40})$|\$\{EFA_VERSION\}", source), source
    assert re.search(r"^ARG EFA_VERSION=\d+\.\d+\.\d+$", DOCKERFILE, re.M)
    assert "--require-hashes" in DOCKERFILE


@pytest.mark.parametrize("name", [".zshrc", ".bashrc", ".zprofile", ".bash_profile"])
def test_a_new_home_contains_the_default_shell_files(name: str) -> None:
    file = FOLDER / "skel" / name
    assert name in CHECK
    shell = "zsh" if name.startswith(".z") else "bash"
    if shutil.which(shell):
        subprocess.run([shell, "-n", file], check=True)


def test_the_image_check_reports_missing_programs() -> None:
    """On a machine that is not such an image."""
    done = subprocess.run(
        ["sh", FOLDER / "check.sh"], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "the image lacks:" in done.stderr

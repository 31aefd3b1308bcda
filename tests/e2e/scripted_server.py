"""The language server with scripted workers: what they find is written in ``scripted_worker.py``."""

import sys
from pathlib import Path

from kernel_forge.lsp import serve

serve(worker=(sys.executable, str(Path(__file__).parent / "scripted_worker.py")))

"""exits.py CODE COMMAND...: runs COMMAND and fails unless it ends with CODE."""

import subprocess
import sys

expected, command = int(sys.argv[1]), sys.argv[2:]
code = subprocess.run(command).returncode
if code != expected:
    sys.exit(f"expected exit code {expected}, found {code}: {' '.join(command)}")

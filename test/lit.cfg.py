"""lit's settings for tests of IR and of the command line.

`weft`, `weft-opt`, `FileCheck`, `not` and `split-file` are found by path: the
build's own folder stands first, then LLVM 22's (the ones on PATH may be older).
"""

import os
import shutil

import lit.formats

config.name = "weft"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".weft", ".test"]
# Inputs/ holds files that tests read; tests of these folders run under ctest.
config.excludes = ["Inputs", "lit.cfg.py", "lit.site.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.weft_binary_dir, "test", "lit-output")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.weft_binary_dir, "bin"), "/usr/lib/llvm-22/bin", "/usr/bin", os.environ.get("PATH", "")]
)
for name in ("HOME", "WEFT_CACHE_DIR", "WEFT_DATA_DIR", "XDG_DATA_HOME", "WEFT_THREADS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["NO_COLOR"] = "1"
# What tests expect is the CPU's, on machines with a GPU too.
config.environment["WEFT_DEVICE"] = "cpu"

# %models: the shipped models. %src: the repository. %python: the one with NumPy.
config.substitutions.append(("%models", os.path.join(config.weft_source_dir, "models")))
config.substitutions.append(("%src", config.weft_source_dir))
config.substitutions.append(("%python", "/usr/bin/python3"))

# A browser that pages are opened in.
if os.environ.get("WEFT_CHROMIUM") or any(map(shutil.which, ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"])):
    config.available_features.add("chromium")

# VS Code's engine of colours: npm install --prefix build/editors vscode-textmate vscode-oniguruma
textmate = os.environ.get("WEFT_TEXTMATE", os.path.join(config.weft_source_dir, "build", "editors", "node_modules"))
config.substitutions.append(("%textmate", textmate))
if shutil.which("node") and os.path.isdir(os.path.join(textmate, "vscode-textmate")):
    config.available_features.add("textmate")

# A stand-in for the driver, where it was built (test/runtime/cuda/Stub.h).
stub = os.path.join(config.weft_binary_dir, "test", "runtime", "cuda", "stub")
config.substitutions.append(("%cudastub", stub))
if os.path.exists(os.path.join(stub, "libcuda.so.1")):
    config.available_features.add("cuda-stub")

for tool in ("weft", "weft-opt"):
    if not os.path.exists(os.path.join(config.weft_binary_dir, "bin", tool)):
        lit_config.fatal(f"{config.weft_binary_dir}/bin/{tool} not found: build it before lit runs")

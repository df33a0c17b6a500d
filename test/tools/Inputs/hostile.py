"""hostile.py CASE FOLDER MODELS TEXT: machines that are full, shared, or lie.

disk    files may not grow past 64 KiB: one line, exit code 1, and what was there stays
shared  two processes fill one kernel cache at the same moment: both are right
flipped every file of the cache damaged somewhere: compiled again, the same bytes
"""

import os
import random
import resource
import signal
import subprocess
import sys

case, folder, models, text = sys.argv[1:]
nano = os.path.join(models, "nano.weft")
train = ["weft", "train", nano, "--set", f"data={text}", "--set", "held_out=none", "--set", "steps=4", "--set", "save=every 2 steps keep 1"]


def run(*command, **more):
    return subprocess.run(command, capture_output=True, text=True, **more)


def narrow():
    """Writes past 64 KiB fail as on a full disk, with an error instead of a signal."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, 64 << 10))


def disk():
    done = run(*train, "--out", f"{folder}/whole")
    assert done.returncode == 0, done
    before = sorted(os.listdir(f"{folder}/whole/checkpoints"))
    done = run("weft", "train", "--resume", f"{folder}/whole", "--steps", "8", preexec_fn=narrow)
    assert done.returncode == 1, done
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("weft: ") and "safetensors" in line and "needed" in line and "free" in line, line
    assert sorted(os.listdir(f"{folder}/whole/checkpoints")) == before, "the last good checkpoint is gone, or half a new one is there"
    # With room again the run goes on from there.
    done = run("weft", "train", "--resume", f"{folder}/whole", "--steps", "8")
    assert done.returncode == 0, done
    # What was written by other commands is whole or not there.
    done = run("weft", "params", nano, "--dump", f"{folder}/start.safetensors", preexec_fn=narrow)
    assert done.returncode == 1 and not os.path.exists(f"{folder}/start.safetensors"), done
    done = run("weft", "compile", nano, "--emit", "exe", "-o", f"{folder}/nano.exe", preexec_fn=narrow)
    assert done.returncode == 1 and not os.path.exists(f"{folder}/nano.exe"), done
    assert [name for name in os.listdir(folder) if name.startswith(".")] == [], os.listdir(folder)


def compiled(cache, out):
    return ["weft", "compile", nano, "--emit", "exe", "-o", out], {**os.environ, "WEFT_CACHE_DIR": cache}


def shared():
    cache = f"{folder}/cache"
    command, environment = compiled(f"{folder}/alone", f"{folder}/alone.exe")
    assert run(*command, env=environment).returncode == 0
    started = []
    for number in range(2):
        command, environment = compiled(cache, f"{folder}/{number}.exe")
        started.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    for process in started:
        output, errors = process.communicate()
        assert process.returncode == 0, errors
    contents = {open(f"{folder}/{name}.exe", "rb").read() for name in ("alone", 0, 1)}
    assert len(contents) == 1, "executables differ"
    left = [name for _, _, names in os.walk(cache) for name in names if ".tmp" in name]
    assert left == [], left


def flipped():
    cache = f"{folder}/cache"
    command, environment = compiled(cache, f"{folder}/one.exe")
    assert run(*command, env=environment).returncode == 0
    draw = random.Random(5)
    files = [os.path.join(root, name) for root, _, names in os.walk(cache) for name in names]
    assert len(files) > 20, files
    for path in files:
        with open(path, "r+b") as file:
            data = bytearray(file.read())
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
            file.seek(0)
            file.write(data)
    command, environment = compiled(cache, f"{folder}/two.exe")
    done = run(*command, env=environment)
    assert done.returncode == 0, done
    assert open(f"{folder}/one.exe", "rb").read() == open(f"{folder}/two.exe", "rb").read()
    # An empty file, a folder in a file's place.
    os.truncate(files[0], 0)
    os.remove(files[1])
    os.mkdir(files[1])
    done = run(*command, env=environment)
    assert done.returncode == 0, done
    assert open(f"{folder}/one.exe", "rb").read() == open(f"{folder}/two.exe", "rb").read()


{"disk": disk, "shared": shared, "flipped": flipped}[case]()

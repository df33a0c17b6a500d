"""What the experiments share: runs that go on where they were stopped, paired
tables, and their place in docs/experiments.md."""
import argparse
import concurrent.futures
import datetime
import json
import math
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def arguments(name, description, **defaults):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(cpu_steps=defaults["steps"])
    parser.add_argument("--steps", type=int, help=f"steps of each run (default: {defaults['steps']}, more with --gpu)")
    parser.add_argument("--seeds", default=defaults.get("seeds", "1,2,3"), help="default: %(default)s")
    parser.add_argument("--arms", help="only these, with commas; the first is compared with")
    parser.add_argument("--gpu", action="store_true", help="the larger model of this experiment, on an NVIDIA GPU")
    parser.add_argument("--out", help=f"default: runs/experiments/{name}, with --gpu {name}-gpu")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time; what the GPU or the cores can hold (default: %(default)s)")
    parser.add_argument("--table", action="store_true", help="train nothing: the table of the runs that are finished")
    parser.add_argument("--weft", default=os.path.join(ROOT, "build", "dev", "bin", "weft"))
    parser.add_argument("--write", action="store_true", help="put the table into docs/experiments.md")
    return parser


def parsed(parser, name, gpu_steps):
    """Options; `gpu_steps` are the steps with --gpu where none are named."""
    parser.set_defaults(steps=None)
    cpu_steps = parser.get_default("cpu_steps")
    options = parser.parse_args()
    options.steps = options.steps or (gpu_steps if options.gpu else cpu_steps)
    options.out = options.out or os.path.join("runs", "experiments", name + ("-gpu" if options.gpu else ""))
    return options


class Experiment:
    def __init__(self, name, options):
        self.name, self.options = name, options
        self.seeds = [int(seed) for seed in options.seeds.split(",")]
        self.rows, self.arms = {}, {}  # arm: {seed: result}; the arms in their order
        os.makedirs(options.out, exist_ok=True)

    def folder(self, arm, seed):
        return os.path.join(self.options.out, arm.replace(" ", "-"), f"seed-{seed}")

    def weft(self, *words, quiet=True):
        several = self.options.jobs > 1  # what they say would be mixed up
        done = subprocess.run([self.options.weft, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE if several else None, text=True)
        if done.returncode == 130:
            sys.exit("stopped and saved; the same command goes on")
        if done.returncode != 0:
            sys.exit(f"failed: weft {shlex.join(words)}" + (f"\n{done.stderr[-1000:]}" if several else ""))
        return done.stdout

    def side_by_side(self, tasks):
        """Does (name, name of the task it needs or None, function) tasks, at most --jobs at a time, earlier ones
        first. What needs a failed one is left out. Returns whether all were done."""
        done, waiting, running = set(), list(tasks), {}
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            while waiting or running:
                ready = [task for task in waiting if task[1] is None or task[1] in done]
                for task in ready[:self.options.jobs - len(running)]:
                    waiting.remove(task)
                    running[pool.submit(task[2])] = task[0]
                if not running:
                    break
                for future in concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED).done:
                    name = running.pop(future)
                    if future.exception():
                        print(f"{name}: {future.exception()}", file=sys.stderr, flush=True)
                    else:
                        done.add(name)
        return len(done) == len(tasks)

    def log(self, folder, kind):
        lines = []
        with open(os.path.join(folder, "log.jsonl")) as file:
            for text in file:
                try:
                    line = json.loads(text)
                except ValueError:
                    continue  # torn by a kill
                if line.get("kind") == kind:
                    lines.append(line)
        return lines

    def state(self, folder):
        """run.json of the latest checkpoint, or None."""
        try:
            with open(os.path.join(folder, "checkpoints", "latest")) as file:
                latest = file.read().strip()
            with open(os.path.join(folder, "checkpoints", latest, "run.json")) as file:
                return json.load(file)
        except OSError:
            return None

    def broke(self, folder):
        """The step from which a run had no usable gradient, when it ended for that (50 in a row, the last not logged), or None."""
        try:
            lines = self.log(folder, "train")
        except OSError:
            return None
        last = lines[-49:]
        whole = len(last) == 49 and last[-1]["step"] - last[0]["step"] == last[-1]["skipped"] - last[0]["skipped"] == 48
        return last[0]["step"] if whole and last[0]["skipped"] else None

    def train(self, folder, begin, plans=(), until=None, steps=None):
        """Trains to the end (`steps`, or those of all runs), or to step `until`; `begin` are the words that start the run.
        A run whose gradients broke has no loss and says at which step."""
        state = self.state(folder)
        goal = until or steps or self.options.steps
        if self.broke(folder):
            return {"loss": math.nan, "broke": self.broke(folder), "tokens": 0}
        stop = (["--until", str(until)] if until else []) + (["--device", "cuda"] if self.options.gpu else [])
        if state is None or state["step"] < goal:
            if self.options.table:
                raise SystemExit(f"not finished: {folder}")
            try:
                if state is None and not os.path.exists(os.path.join(folder, "run.weft")):
                    self.weft("train", *begin, "--out", folder, *stop)
                else:
                    self.weft("train", "--resume", folder, *stop, *plans)
            except SystemExit:
                if not self.broke(folder):
                    raise
                return self.train(folder, begin)
        return self.result(folder, finished=until is None)

    def branch(self, trunk, folder):
        """A copy of a run that stopped, to go on in another way."""
        if not os.path.exists(folder) and not self.options.table:
            shutil.copytree(trunk, folder + ".copying")
            os.rename(folder + ".copying", folder)

    def result(self, folder, finished):
        evaluations, state = self.log(folder, "eval"), self.state(folder)
        result = {"loss": evaluations[-1]["loss"] if evaluations else math.nan, "tokens": state["tokens"],
                  "seconds": state["seconds"]}
        windows = self.log(folder, "windows")
        if windows:
            result["acr"] = windows[-1]["acr"]
            if "pair_ratio" in windows[-1]:
                result["pairs"] = windows[-1]["pair_ratio"]
        if finished and math.isnan(result["loss"]):
            raise SystemExit(f"no evaluation in {folder}")
        return result

    def note(self, arm, seed, result):
        self.rows.setdefault(arm, {})[seed] = result
        print(f"{arm}, seed {seed}: " + ", ".join(f"{key} {value:.4g}" for key, value in result.items()
                                                 if isinstance(value, float)), file=sys.stderr, flush=True)

    def difference(self, arm, against, key="loss"):
        """Mean, sd and number of differences by seed."""
        ours, theirs = self.rows[arm], self.rows.get(against, {})
        d = [ours[seed][key] - theirs[seed][key] for seed in ours if seed in theirs]
        return statistics.mean(d) if d else math.nan, statistics.stdev(d) if len(d) > 1 else math.nan, len(d)

    def table(self, against, distinct, columns=(), floor=None):
        """Markdown. `floor`: an arm that is the same function as `against`; its difference is noise."""
        head = ["arm", "loss", "perplexity", "difference", "sd", "seeds", ""] + list(columns) + ["tokens", "epochs"]
        lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
        width = abs(self.difference(floor, against)[0]) if floor in self.rows else 0.0
        for arm, results in sorted(self.rows.items(), key=lambda row: list(self.arms).index(row[0])):
            losses = [result["loss"] for result in results.values()]
            loss, first = statistics.mean(losses), next(iter(results.values()))
            mean, sd, count = self.difference(arm, against)
            noise = arm != against and (count < 2 or not abs(mean) >= 2 * sd or abs(mean) <= width)
            word = "noise floor" if arm == floor else "one seed" if noise and count < 2 else "within noise" if noise else ""
            broke = [result["broke"] for result in results.values() if "broke" in result]
            if broke:
                word = f"broke at step {min(broke)}"
            cells = [arm, "-", "-"] if broke else [arm, f"{loss:.4f}", f"{math.exp(loss):.3f}"]
            cells += ["", "", str(count), ""] if arm == against else [
                "-" if math.isnan(mean) else f"{mean:+.4f}", "-" if math.isnan(sd) else f"{sd:.4f}", str(count), word]
            for column in columns:
                values = [result[column] for result in results.values() if column in result]
                mean = statistics.mean(values) if values else math.nan
                cells.append("-" if not values else f"{mean:,.0f}" if mean >= 10000 else f"{mean:.4g}")
            cells += [f"{first['tokens']:,}", f"{first['tokens'] / distinct:.2f}"]
            lines.append("| " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def finish(self, title, text, kind=""):
        """Prints the table; with --write it takes the place of the one of this experiment, kind and number of steps."""
        title += " on a GPU" if self.options.gpu else ""
        print(text)
        if not self.options.write:
            return
        path = os.path.join(ROOT, "docs", "experiments.md")
        key = f"{self.name}{kind}{' on a GPU' if self.options.gpu else ''}, {self.options.steps} steps"
        begin, end = f"<!-- {key} -->", f"<!-- end of {key} -->"
        words, rest = [], iter(sys.argv[1:])
        for word in rest:  # which binary and which folder are this machine's affair
            if word in ("--weft", "--out"):
                next(rest, None)
            elif word != "--write":
                words.append(word)
        command = f"`tools/experiments/{self.name}{' ' if words else ''}{shlex.join(words)}`"
        block = (f"{begin}\n## {title}, {self.options.steps} steps\n\n{datetime.date.today()}, {machine(self.options.gpu)}, {command}\n\n{text}\n{end}\n")
        with open(path) as file:
            whole = file.read()
        if begin in whole:
            whole = whole[:whole.index(begin)] + block + whole[whole.index(end) + len(end) + 1:]
        else:
            whole = whole.rstrip("\n") + "\n\n" + block
        with open(path, "w") as file:
            file.write(whole)


def machine(gpu):
    if gpu:
        words = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        return subprocess.run(words, stdout=subprocess.PIPE, text=True).stdout.splitlines()[0]
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
        return f"{names[0]}, {len(names)} cores"
    except (OSError, IndexError):
        return platform.machine()


def tokens_of(experiment, source, *words):
    return json.loads(experiment.weft("data", "show", source, *words, "--json"))["tokens"]


def chosen(experiment, arms):
    wanted = experiment.options.arms
    experiment.arms = arms if wanted is None else {name: arms[name] for name in wanted.split(",")}
    return experiment.arms

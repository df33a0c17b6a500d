"""Asks every command for help, and gives it a flag that no command has."""

import re
import subprocess


def weft(*arguments):
    return subprocess.run(["weft", *arguments], capture_output=True, text=True)


commands = [[name] for name in re.findall(r"^  (\w+) ", weft("--help").stdout.split("examples:")[0], re.M)]
assert len(commands) >= 17, commands
for group in ["plan", "data", "cache", "measure"]:
    commands.remove([group])
    actions = re.findall(r"^  (\w+) ", weft(group, "--help").stdout, re.M)
    assert actions, group
    commands += [[group, action] for action in actions]
for command in commands:
    helped = weft(*command, "--help")
    assert helped.returncode == 0 and "examples:\n  weft " + " ".join(command) in helped.stdout, (command, helped)
    refused = weft(*command, "--no-such-flag")
    assert refused.returncode == 2 and "no-such-flag" in refused.stderr, (command, refused)

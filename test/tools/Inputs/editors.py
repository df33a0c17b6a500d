"""editors.py SOURCE [MODULES]: every word of the language, and every function, is in both syntax files; the grammar of
VS Code colours every word, number, text and comment of the shipped models as what it is; the extension names
files that it holds. With MODULES, a folder of vscode-textmate and vscode-oniguruma, VS Code's own engine must
colour each character of the models as the rules written down here do.

The words are those of docs/language.md; the functions, those that the checker knows."""

import json
import os
import re
import subprocess
import sys

source = sys.argv[1]
engine = {}
if len(sys.argv) > 2:
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "textmate.js")
    engine = json.loads(subprocess.run(["node", script, source, sys.argv[2]], capture_output=True, text=True, check=True).stdout)
    assert len(engine) > 5, engine.keys()


def read(path):
    with open(os.path.join(source, path)) as file:
        return file.read()


text = re.search(r"Words of the language: `([^`]*)`", read("docs/language.md"))[1]
words = set(text.split())
checker = read("frontend/CheckCalls.cpp")
lists = re.findall(r"k(?:Unary|Other)\b[^{]*=\s*\{([^}]*)\}", checker)
functions = set(re.findall(r'"(\w+)"', " ".join(lists))) - {"neg"}  # written `-`
assert len(words) >= 24 and {"rope", "silu"} <= functions, (words, functions)

vim = set(re.findall(r"\w+", "\n".join(re.findall(r"^syntax keyword \w+ (.*)$", read("tools/editors/weft.vim"), re.M))))
patterns = json.dumps(json.loads(read("tools/editors/vscode/weft.tmLanguage.json"))["patterns"]).replace("\\\\b", " ")
code = set(re.findall(r"[a-z_]+", patterns))
for name, known in (("weft.vim", vim), ("weft.tmLanguage.json", code)):
    missing = (words | functions) - known
    assert not missing, f"tools/editors/{name} does not know {sorted(missing)}"


def tokens(line, rules):
    """(text, scope) of a line, scope None where nothing matches: TextMate's rule, the earliest match, then the first rule."""
    at = 0
    while at < len(line):
        found = [(match.start(), number, match) for number, rule in enumerate(rules) if (match := rule["first"].search(line, at))]
        if not found:
            yield line[at:], None
            return
        start, number, match = min(found, key=lambda each: each[:2])
        if start > at:
            yield line[at:start], None
        rule = rules[number]
        end = match.end()
        assert end > start, (line, rule)
        if "last" in rule:
            while True:  # an escape, or the end
                stop = rule["last"].search(line, end)
                inside = rule["inside"].search(line, end)
                if not inside or inside.start() >= stop.start():
                    break
                end = inside.end()
            end = stop.end()
            yield line[start:end], rule["name"]
        elif "captures" in rule:
            done = start
            for group, capture in sorted(rule["captures"].items()):
                yield line[done:match.start(int(group))], None
                yield match[int(group)], capture["name"]
                done = match.end(int(group))
        else:
            yield line[start:end], rule["name"]
        at = end


rules = json.loads(read("tools/editors/vscode/weft.tmLanguage.json"))["patterns"]
for rule in rules:
    rule["first"] = re.compile(rule.get("match") or rule["begin"])
    if "end" in rule:
        rule["last"] = re.compile(rule["end"])
        rule["inside"] = re.compile(rule["patterns"][0]["match"])
seen = set()
for name in sorted(os.listdir(os.path.join(source, "models"))):
    if not name.endswith(".weft"):
        continue
    for number, line in enumerate(read(f"models/{name}").splitlines(), 1):
        place = f"models/{name}:{number}"
        parts = list(tokens(line, rules))
        assert "".join(text for text, _ in parts) == line, (place, parts)
        if engine:
            scopes = [scope for text, scope in parts for _ in text]
            assert engine[name][number - 1] == scopes, (place, line, engine[name][number - 1], scopes)
        for text, scope in parts:
            kind = (scope or "").split(".")[0]
            seen.add(kind)
            assert kind != "comment" or text.startswith("#"), (place, text)
            assert kind != "string" or text[0] == text[-1] == '"', (place, text)
            if kind in ("comment", "string"):
                continue
            assert not set(text) & set('#"'), (place, text, scope)
            for word in re.findall(r"\w+", text):
                if word in words | functions:
                    assert kind in ("keyword", "storage", "constant", "support", "entity"), (place, word, scope)
                elif word[0].isdigit():
                    assert kind == "constant", (place, word, scope)
                else:
                    assert kind in ("", "entity", "keyword", "constant"), (place, word, scope)
assert {"comment", "string", "constant", "keyword", "storage", "support", "entity"} <= seen, seen

folder = "tools/editors/vscode"
extension = json.loads(read(f"{folder}/package.json"))
language, grammar = extension["contributes"]["languages"][0], extension["contributes"]["grammars"][0]
assert language["id"] == grammar["language"] == "weft" and language["extensions"] == [".weft"]
for path in (extension["main"], language["configuration"], grammar["path"]):
    read(f"{folder}/{path}")
assert json.loads(read(f"{folder}/{grammar['path']}"))["scopeName"] == grammar["scopeName"]
configuration = json.loads(read(f"{folder}/{language['configuration']}"))
assert configuration["comments"]["lineComment"] == "#"
# What version 9 of the client asks for: an older editor would install it and not start it.
assert extension["dependencies"]["vscode-languageclient"].startswith("^9.") and extension["engines"]["vscode"] == "^1.82.0"
client = read(f"{folder}/extension.js")
assert re.search(r'language: "weft"', client) and re.search(r'command: "weft", args: \["lsp"\]', client)

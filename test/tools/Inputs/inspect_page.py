"""inspect_page.py model PAGE TRAIL            the page of a model holds what the compiler did
inspect_page.py run PAGE RUN                 the page of a run holds what its log says
inspect_page.py texts PAGE TEXT...           hostile texts stand in the page, and none as markup

The document is taken out of the page and read by other code than the page's own."""

import html.parser
import json
import os
import re
import sys


class Parts(html.parser.HTMLParser):
    """Every element of a page, and the texts of its scripts and title."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements, self.texts, self.inside = [], {}, None

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.inside = dict(attributes).get("id") or tag

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, data):
        if self.inside:
            self.texts[self.inside] = self.texts.get(self.inside, "") + data


def load(path):
    parts = Parts()
    with open(path, encoding="utf-8") as file:
        text = file.read()
    parts.feed(text)
    assert not re.search(r"""(src|href)=["'](?!#)|@import|url\(|https?://(?!www\.w3\.org/2000/svg)""",
                         text.replace(parts.texts["document"], "")), "the page asks for something"
    return parts, json.loads(parts.texts["document"])


def texts_of(ir):
    """The IR after each change, as `weft compile --trail` writes it."""
    lines, texts = [], []
    for text in ir["texts"]:
        now, at = [], 0
        for keep, drop, *add in text["edits"]:
            now += lines[at:at + keep] + add
            at += keep + drop
        lines = now + lines[at:]
        numbers, current, printed = iter(text["numbers"]), -1, []
        for line in lines:
            first = True

            def number(_):
                nonlocal current, first
                packed = next(numbers)
                value = packed + current + 1 if first else current - packed
                current = value if first else current
                first = False
                return "%" if value < 0 else f"%{value}"

            printed.append(re.sub(r"%(?![A-Za-z0-9_])", number, ir["templates"][ir["lines"][2 * line]]))
        assert next(numbers, None) is None
        texts.append((printed, [ir["lines"][2 * line + 1] for line in lines]))
    return texts


def check_ir(document, trail):
    texts = texts_of(document["ir"])
    written = sorted(name for name in os.listdir(trail) if name.endswith(".mlir"))
    assert len(texts) == len(written), (len(texts), written)
    passes = [entry for entry in document["passes"] if entry["changed"]]
    for (printed, places), name, entry in zip(texts, written, passes):
        with open(os.path.join(trail, name), encoding="utf-8") as file:
            wanted = file.read().splitlines()
        assert printed == wanted, name
        assert name == f"{passes.index(entry):02}-{entry['name']}.mlir" and entry["lines"] == len(wanted), (name, entry)
        # Every op of the model's text has a place in it.
        if entry["name"] == "weft-unroll-layers":
            missing = [line for line, place in zip(printed, places) if re.match(r"\s+%\d+ = weft\.(contract|attend)", line) and not place]
            assert not missing, missing[:3]
    for entry, before in zip(document["passes"][1:], document["passes"]):
        assert entry["lines"] == before["lines"] + entry["added"] - entry["dropped"], entry
    return texts


def check_places(document, texts):
    """An op that a word of the text names stands where that word does, line and column."""
    files = [file["text"].splitlines() for file in document["sources"]["files"]]
    found = set()
    for printed, places in texts[:2]:
        for line, place in zip(printed, places):
            named = re.match(r"\s*%.* = weft\.(attend|rms_norm|rope)\b", line)
            if named:
                at = document["ir"]["places"][place]["at"]
                assert any(files[file][number - 1][column - 1:].startswith(named[1] + "(") for file, number, column in at), (line, at)
                found.add(named[1])
    assert len(found) == 3, found


def check_memory(document):
    """Buffers that are alive at once share no byte, and lie in the arena."""
    for program in document["memory"]["programs"]:
        buffers = program["buffers"]
        for i, (first, last, size, offset, kind, writer) in enumerate(buffers):
            assert 0 <= first <= last < len(program["calls"]) and 0 <= offset and offset + size <= program["arena"], program["name"]
            for other in buffers[:i]:
                apart = other[1] < first or last < other[0] or other[3] + other[2] <= offset or offset + size <= other[3]
                assert apart, (program["name"], buffers[i], other)
    micro = next(p for p in document["memory"]["programs"] if p["name"] == "micro")
    assert micro["buffers"] and micro["arena"] == document["summary"]["arena"]
    end = max(offset + size for _, _, _, offset, size in document["memory"]["state"]["entries"])
    assert end <= document["memory"]["state"]["bytes"]


def check_kernels(document):
    """Calls are those of the schedule; a product of [m, k] and [k, n] has 2 m n k FLOPs."""
    calls = {}
    for program in document["memory"]["programs"]:
        for call in program["calls"]:
            name = program["kernels"][call]
            if name not in ("fill", "copy"):
                calls.setdefault(name, {}).setdefault(program["name"], 0)
                calls[name][program["name"]] += 1
    assert {k["name"]: k["calls"] for k in document["kernels"]} == calls
    classes = {k["class"] for k in document["kernels"]}
    assert {"attention", "product", "rows"} <= classes, classes


def check_ledger(document):
    """A fused kernel moves no more than its ops one by one; what they lose is what the programs lose."""
    assert document["ledger"]
    for row in document["ledger"]:
        assert row["count"] >= 2 and row["calls"] == len(row["scopes"]) and 0 < row["fused"] <= row["apart"], row
    traffic = {entry["name"]: entry["traffic"] for entry in document["passes"]}
    before, after = traffic["weft-split-sums"], traffic["weft-outline-kernels"]
    # All that fusion takes away is what the ledger says, program by program.
    for program in before:
        gone = sum((row["apart"] - row["fused"]) * row["calls"] for row in document["ledger"] if row["program"] == program)
        assert before[program] - after[program] == gone, (program, before, after, gone)


def model(page, trail):
    parts, document = load(page)
    texts = check_ir(document, trail)
    check_places(document, texts)
    check_memory(document)
    check_kernels(document)
    check_ledger(document)
    print(f"{len(texts)} texts as the trail has them; memory, kernels and fusions agree")


def run(page, folder):
    _, document = load(page)
    with open(os.path.join(folder, "log.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    curves = {(c["kind"], c["key"]): c for c in document["log"]["curves"]}
    for kind, key in [("train", "loss"), ("train", "lr"), ("eval", "loss"), ("train", "tokens_per_s"), ("windows", "acr")]:
        wanted = [(line["step"], line[key]) for line in lines if line["kind"] == kind]
        curve = curves[kind, key]
        assert wanted and list(zip(curve["steps"], curve["values"])) == wanted, (kind, key)
    log = document["log"]["windows"]
    seen, last = [], None
    for line in lines:
        if line["kind"] == "windows" and line["windows"] != last:
            last = line["windows"]
            seen.append((line["step"], last))
    assert log["changes"] == len(seen) == len(log["frames"]), (log["changes"], len(seen))
    for (step, codes), (wanted_step, wanted) in zip(log["frames"], seen):
        flat = ["full" if window < 0 else window for window in (log["palette"][log["alphabet"].index(c)] for c in codes)]
        assert step == wanted_step and flat == sum(wanted, []), (step, flat, wanted)
    freezes = [line for line in lines if line["kind"] == "freeze"]
    assert document["log"]["freezes"] == freezes and freezes
    for line in freezes:
        for head in line["installed"]:
            site = next(s for s in document["heads"]["sites"] if s["path"] == head["site"])
            assert head["head"] in site["pruned" if line["action"] == "prune" else "frozen"], (head, site)
            assert line["action"] != "prune" or site["windows"][head["head"]] == 0
    frozen = sum(len(site["frozen"]) for site in document["heads"]["sites"])
    assert len(document["patterns"]) == frozen and all(len(p["a"]) == len(p["r"]) == 64 for p in document["patterns"])
    print(f"{len(lines)} lines of the log, {len(seen)} changes of windows, {frozen} patterns")


def texts(page, *wanted):
    parts, document = load(page)
    def strings(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                yield key
                yield from strings(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from strings(inner)
        elif isinstance(value, str):
            yield value
    everything = "\n".join(strings(document)) + parts.texts["title"]
    for text in wanted:
        assert text in everything, text
    # Whatever the texts hold, the page has its own elements and no other.
    tags = [tag for tag, _ in parts.elements]
    assert tags.count("script") == 2 and not {"img", "b", "iframe", "svg", "object", "base", "link"} & set(tags), tags
    assert not any(name.startswith("on") for _, attributes in parts.elements for name in attributes)
    print(f"{len(wanted)} texts, no markup")


{"model": model, "run": run, "texts": texts}[sys.argv[1]](*sys.argv[2:])

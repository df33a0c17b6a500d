"""lsp_client.py SOURCE CASE: talks to `weft lsp` and checks what it says.

Expected figures are worked by hand or come from another command of weft, which
computes them from the IR (`weft flops`)."""

import json
import os
import re
import select
import statistics
import subprocess
import sys
import tempfile
import time

SOURCE, CASE = sys.argv[1:3]
URI = "file://" + os.path.abspath(SOURCE) + "/models/"


class Client:
    def __init__(self, initialize=True):
        self.process = subprocess.Popen(["weft", "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, bufsize=0)
        self.next = 0
        self.waiting = b""
        if initialize:
            self.capabilities = self.request("initialize", {"processId": None, "rootUri": None,
                                                            "capabilities": {}})["result"]["capabilities"]
            self.notify("initialized", {})

    def raw(self, data):
        self.process.stdin.write(data)

    @staticmethod
    def frame(message):
        body = json.dumps(message, ensure_ascii=False).encode()
        return b"Content-Length: %d\r\n\r\n" % len(body) + body

    def read(self, seconds=20):
        end = time.monotonic() + seconds
        while True:
            head, found, rest = self.waiting.partition(b"\r\n\r\n")
            if found:
                length = int(head.split(b":")[1])
                if len(rest) >= length:
                    self.waiting = rest[length:]
                    return json.loads(rest[:length])
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                sys.exit("no answer")
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                sys.exit("the server ended: " + self.process.stderr.read().decode())
            self.waiting += data

    def request(self, method, params):
        self.next += 1
        self.raw(self.frame({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}))
        while (answer := self.read()).get("id") != self.next:
            pass
        return answer

    def notify(self, method, params):
        self.raw(self.frame({"jsonrpc": "2.0", "method": method, "params": params}))

    def open(self, uri, text):
        self.notify("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "weft", "version": 1,
                                                              "text": text}})
        return self.problems(uri)

    def change(self, uri, changes):
        self.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": 2},
                                               "contentChanges": changes})
        return self.problems(uri)

    def problems(self, uri):
        while True:
            message = self.read()
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
                return message["params"]["diagnostics"]

    def at(self, method, uri, text, word, skip=0, **more):
        offset = text.index(word) + skip
        before = text[:offset]
        line = before.count("\n")
        units = len(before[before.rfind("\n") + 1:].encode("utf-16-le")) // 2
        return self.request("textDocument/" + method, {"textDocument": {"uri": uri}, **more,
                                                       "position": {"line": line, "character": units}})["result"]

    def hover(self, uri, text, word, skip=0):
        return self.at("hover", uri, text, word, skip)["contents"]["value"]

    def end(self):
        assert self.request("shutdown", None)["result"] is None
        self.notify("exit", None)
        assert self.process.wait(20) == 0, self.process.returncode


def expect(found, wanted):
    if found != wanted:
        sys.exit(f"expected {wanted!r}, found {found!r}")


def has(text, *parts):
    for part in parts:
        if part not in text:
            sys.exit(f"expected {part!r} in:\n{text}")


def model(name):
    with open(f"{SOURCE}/models/{name}.weft", encoding="utf-8") as file:
        return file.read()


def flops(name, *flags):
    output = subprocess.run(["weft", "flops", f"{SOURCE}/models/{name}.weft", "--json", *flags],
                            check=True, capture_output=True).stdout
    return json.loads(output)


def short(number):
    """As the server writes FLOPs: three digits."""
    for unit in ["", "k", "M", "G"]:
        if number < 1000:
            return f"{number:.3g} {unit}FLOP"
        number /= 1000
    return f"{number:.3g} TFLOP"


def shapes_and_costs():
    client = Client()
    expect(client.capabilities["positionEncoding"], "utf-16")
    text = model("nano")
    expect(client.open(URI + "nano.weft", text), [])
    # The IR's own count, of both layers and of one: `weft flops`.
    told = flops("nano")
    tokens = told["batch"] * told["positions"]
    layers = [group["forward"]["product_flops"] / tokens for group in told["groups"]
              if group["name"].startswith("block")]
    page = client.hover(URI + "nano.weft", text, "block[depth]")
    # A layer: 32 + 4 x 32 x 32 + 32 + 2 x 32 x 64 = 8256.
    has(page, "- parameters: 16,512, each of 2: 8,256",
        f"per token: {short(sum(layers))}, each of 2: {short(layers[0])}", "rows of 64 positions",
        "- the model: full (4 heads)")
    page = client.hover(URI + "nano.weft", text, "nano(")
    has(page, "- parameters: 24,736", short(told["forward"]["product_flops"] / tokens))
    has(client.hover(URI + "nano.weft", text, "wq, wk"), "param wq : [dim = 32, heads = 2, head = 16]",
        "path `block.attn.wq`", "2,048 parameters in 2 tensors of 1,024", "`normal(dim ** -0.5)`")
    has(client.hover(URI + "nano.weft", text, "x += branch ffn"), "x : [batch, pos, dim = 32]")
    has(client.hover(URI + "nano.weft", text, "@ up"), "[batch, pos, hidden = 64]",
        short(2 * 32 * 64))
    has(client.hover(URI + "nano.weft", text, "gelu(h"), "x (1 + erf(x / sqrt 2)) / 2")
    has(client.hover(URI + "nano.weft", text, "cosine", -8), "of the rate")
    client.end()

    # A model without a recipe: rows of 1024 positions.
    client = Client()
    text = model("qwen3")
    expect(client.open(URI + "qwen3.weft", text), [])
    told = flops("qwen3", "--batch", "1", "--positions", "1024")
    has(client.hover(URI + "qwen3.weft", text, "qwen3(vocab"), "- parameters: 596,049,920",
        short(told["forward"]["product_flops"] / 1024))
    client.end()


def windows():
    client = Client()
    text = model("nano") + """
plan mixed for nano {
  windows 16 on block[..].attn
  windows full on block[0].attn.heads[1]
}
plan later for nano { windows adaptive [16, 32, full] on block[1].attn }
"""
    uri = "file:///nowhere/windows.weft"
    expect(client.open(uri, text), [])
    # Pairs of 64 positions: full 2080, window 16: 136 + 48 x 16 = 904. (3 x 904 + 2080) / 4 / 2080 = 57.6%.
    has(client.hover(uri, text, "attend("), "- the model: full (4 heads)",
        "- plan mixed: 16 (3 heads), full (1 head); 57.6% of the pairs of full attention over 64 positions",
        "chosen in training from 16, 32, full (2 heads)")
    client.end()


def navigation():
    client = Client()
    text = model("plans")
    # san has no ffn at its own settings: `weft check` says the same.
    expect({problem["code"] for problem in client.open(URI + "plans.weft", text)}, {"W0417"})
    found = client.at("definition", URI + "plans.weft", text, "block[..].attn")
    expect(found["uri"], URI + "gpt2.weft")
    line = model("gpt2").splitlines()[found["range"]["start"]["line"]]
    has(line, "layer block")
    nano = model("nano")
    client.open(URI + "nano.weft", nano)
    uses = client.at("references", URI + "nano.weft", nano, "dim = 32", context={"includeDeclaration": False})
    # Counted in the text: `dim` as a word, less its declaration and `hidden = 2 * dim`'s own name.
    expect(len(uses), len(re.findall(r"\bdim\b", nano)) - 1)
    symbols = client.request("textDocument/documentSymbol", {"textDocument": {"uri": URI + "nano.weft"}})["result"]
    expect([symbol["name"] for symbol in symbols], ["nano", "austen"])
    block = next(child for child in symbols[0]["children"] if child["name"] == "block")
    expect([child["name"] for child in block["children"]], ["attn", "ffn"])
    steps = client.at("completion", URI + "plans.weft", text, "attn.heads", len("attn."))
    expect("heads" in [item["label"] for item in steps], True)
    client.end()


def typing():
    """Every prefix of a text can be asked about; é and an emoji stand before the columns."""
    client = Client()
    uri = "file:///nowhere/typed.weft"
    text = "model m(vocab = 8, dim = 4) { # é😀 \n  param embed : [vocab, dim] init 0; # é😀\n" \
           "  input tokens : int[batch, pos]\n  output logits = embed[tokens] @ embad\n}\n"
    client.open(uri, "")
    for length in range(1, len(text) + 1):
        before = text[:length - 1]
        line = before.count("\n")
        units = len(before[before.rfind("\n") + 1:].encode("utf-16-le")) // 2
        place = {"line": line, "character": units}
        problems = client.change(uri, [{"range": {"start": place, "end": place}, "text": text[length - 1]}])
        client.request("textDocument/completion", {"textDocument": {"uri": uri}, "position": place})
        client.request("textDocument/hover", {"textDocument": {"uri": uri}, "position": place})
    expect([problem["code"] for problem in problems], ["W0201"])
    has(problems[0]["message"], "did you mean embed?")
    with open(problems[0]["codeDescription"]["href"].removeprefix("file://"), encoding="utf-8") as page:
        has(page.read(), "W0201")
    fix = client.request("textDocument/codeAction", {"textDocument": {"uri": uri}, "range": problems[0]["range"],
                                                     "context": {"diagnostics": problems}})["result"][0]
    expect(client.change(uri, [{"range": edit["range"], "text": edit["newText"]}
                               for edit in fix["edit"]["changes"][uri]]), [])
    client.end()


def latency():
    client = Client()
    text = model("qwen3")
    client.open(URI + "qwen3.weft", text)
    line = next(i for i, each in enumerate(text.splitlines()) if "h = norm(x, gain)" in each)
    place = {"line": line, "character": 6}
    spent = []
    for i in range(60):
        start = time.perf_counter()
        change = {"range": {"start": place, "end": {"line": line, "character": 6 + i % 2}}, "text": " " * ((i + 1) % 2)}
        expect(client.change(URI + "qwen3.weft", [change]), [])
        spent.append(1000 * (time.perf_counter() - start))
    print(f"a key in qwen3.weft: median {statistics.median(spent):.2f} ms, least {min(spent):.2f}, "
          f"most {max(spent):.2f}")
    # The least of 60: other work of the machine does not count.
    expect(min(spent) < 20, True)
    client.end()


def cancelled():
    client = Client()
    client.open(URI + "nano.weft", model("nano"))
    body = {"textDocument": {"uri": URI + "nano.weft"}}
    client.raw(client.frame({"id": 90, "method": "textDocument/documentSymbol", "params": body}) +
               client.frame({"id": 91, "method": "textDocument/documentSymbol", "params": body}) +
               client.frame({"method": "$/cancelRequest", "params": {"id": 91}}))
    expect("result" in client.read(), True)
    expect(client.read()["error"]["code"], -32800)
    client.end()


def hostile():
    def ends(data, *parts):
        client = Client()
        client.raw(data)
        client.process.stdin.close()
        error = client.process.stderr.read().decode()
        expect(client.process.wait(20), 1)
        expect(error.count("\n"), 1)
        has(error, "weft: lsp: ", *parts)

    ends(b"Content-Length: 99999999999999\r\n\r\n{}", "at most 67108864 bytes")
    ends(b"Content-Length: -5\r\n\r\n{}", "expected a Content-Length")
    ends(b"Content-Length: 50\r\n\r\n{\"id\": 1", "the input ended inside a message")
    ends(b"\x00\xff\r\n\r\n", "expected a header line")
    ends(b"x" * 9000, "expected an empty line")
    ends(b"", "without `shutdown`")

    def answers(body, code):
        client = Client()
        client.raw(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        expect(client.read()["error"]["code"], code)
        client.end()

    answers(b"[" * 200000, -32700)
    answers(b'{"a":' * 100000 + b"1" + b"}" * 100000, -32700)
    answers(b'{"id": 1, "method": "\xff\xfe"}', -32700)
    answers(b'"text"', -32600)
    answers(b'{"id": 7, "method": "textDocument/hover", "params": {"textDocument": 3}}', -32602)
    answers(b'{"id": 7, "method": "workspace/nothing"}', -32601)
    client = Client(initialize=False)
    expect(client.request("textDocument/hover", {})["error"]["code"], -32002)
    client.process.stdin.close()
    client.process.wait(20)


with tempfile.TemporaryDirectory() as cache:
    os.environ["WEFT_CACHE_DIR"] = cache
    globals()[CASE]()

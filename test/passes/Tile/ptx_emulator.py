"""Runs PTX kernels on NumPy: an independent judge of what tiles are lowered to.

Written from the PTX ISA (8.0): register fragments of wgmma, mma.sync, ldmatrix
and stmatrix, matrix descriptors, swizzling, mbarriers. Lanes of a warp run
together, those furthest behind first; what is .aligned or .sync must find all of
them at one place. Copies and products take effect at once: what may come late is
the tile interpreter's to judge. Faults raise Fault with the instruction.
"""

import re

import numpy as np

SHARED_BASE = 1024  # not 0: an address that lost its base shows
LANES = np.arange(32)


class Fault(Exception):
    pass


class Map:
    """A tensor map: `array` (bf16 bits as uint16, or float32), innermost axis last; `box` innermost first."""

    def __init__(self, array, box, swizzle):
        self.array, self.box, self.swizzle = array, box, swizzle


def to_bf16(values):
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16(bits):
    return (np.asarray(bits).astype(np.uint32) << 16).view(np.float32)


def parse(text):
    """(parameters, [(guard, op, operands)], labels): names in braces get their block's number."""
    entry = re.search(r"\.entry (\w+)\((.*?)\)(.*?)\{(.*)\}", re.sub(r"//[^\n]*", "", text), re.S)
    parameters = re.findall(r"(\w+_param_\d+)", entry[2])
    code, labels, scopes, at, number = [], {}, [], 0, 0
    body = entry[4]
    rename = lambda word: re.sub(r"(?<![\w%.$])[a-z]\w*(?![\w.])", local, word)

    def local(match):
        for scope, names in reversed(scopes):
            if match[0] in names:
                return f"{match[0]}.{scope}"
        return match[0]

    while True:
        at += len(body[at:]) - len(body[at:].lstrip())
        if at >= len(body):
            return parameters, code, labels
        if body[at] in "{};":
            if body[at] == "{":
                number += 1
                end = body.index("}", at) if "wgmma" not in body[at:body.find(";", body.find(";", at) + 1)] else len(body)
                inside = body[at:end]
                names = {name for line in re.findall(r"\.reg \.\w+ ([a-z, ]+);", inside[:200]) for name in re.split(r",\s*", line)}
                names |= set(re.findall(r"(?<![\w$])([a-z]+):", inside[:300]))
                scopes.append((number, names))
            elif body[at] == "}":
                scopes.pop()
            at += 1
            continue
        if label := re.match(r"([\w$]+):(?!:)", body[at:]):
            labels[rename(label[1])] = len(code)
            at += label.end()
            continue
        end = body.index(";", at)
        statement, at = " ".join(body[at:end].split()), end + 1
        if statement.startswith((".reg", ".pragma")):
            continue
        guard = re.match(r"@(!?)([%\w.]+) ", statement)
        if guard:
            statement = statement[guard.end():]
            guard = (guard[1] == "!", rename(guard[2]))
        op, _, rest = statement.partition(" ")
        operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", rename(rest))
        code.append((guard, op, [operand.strip() for operand in operands]))


def variables(text):
    """{name: bytes} of the module's variables in global memory, which start at 0."""
    found = re.findall(r"\.global \.align \d+ \.[a-z](\d+) (\w+)(?:\[(\d+)\])?(?: = 0)?;", text)
    return {name: np.zeros(int(bits) // 8 * int(count or 1), np.uint8) for bits, name, count in found}


class Barrier:
    def __init__(self, count):
        self.count = self.pending = count
        self.bytes = self.phase = 0

    def settle(self):
        if self.pending == 0 and self.bytes == 0:
            self.phase ^= 1
            self.pending = self.count


class Warp:
    def __init__(self, number):
        self.number = number
        self.pc = np.zeros(32, np.int64)
        self.alive = np.ones(32, bool)
        self.registers = {}
        self.turns = np.zeros(32, np.int64)  # branches backwards
        self.stalled = np.zeros(32, bool)  # at a bar.warp.sync


class Cta:
    def __init__(self, text, arguments, cta, grid, threads, seed=0, memory=None):
        parameters, self.code, self.labels = parse(text)
        self.arguments = dict(zip(parameters, arguments)) | (memory or {})
        self.cta, self.grid, self.threads = cta, grid, threads
        self.shared = np.full(232448, 0xFF, np.uint8)  # NaN wherever nothing was written
        self.barriers, self.named, self.groups = {}, {}, {}
        self.warps = [Warp(i) for i in range(threads // 32)]
        self.random = np.random.default_rng(seed)
        self.addresses = {}  # base address of each global array
        for i, (name, value) in enumerate(self.arguments.items()):
            self.addresses[name] = (i + 1) << 40

    # Values are kept as 64 raw bits a lane.
    def read(self, warp, word, kind):
        if re.fullmatch(r"0f[0-9A-Fa-f]{8}", word):
            bits = np.full(32, int(word[2:], 16), np.uint64)
        elif re.fullmatch(r"-?(0x)?[0-9a-fA-F]+", word):
            bits = np.full(32, int(word, 0) & (2**64 - 1), np.uint64)
        elif word == "weft_shared":
            bits = np.full(32, SHARED_BASE, np.uint64)
        elif word in self.arguments:
            bits = np.full(32, self.addresses[word], np.uint64)
        elif word == "%tid.x":
            bits = (LANES + 32 * warp.number).astype(np.uint64)
        elif word in ("%ctaid.x", "%nctaid.x"):
            bits = np.full(32, self.cta if word[1] == "c" else self.grid, np.uint64)
        elif word in warp.registers:
            bits = warp.registers[word]
        else:
            raise Fault(f"{word} is read before it is written")
        return as_kind(bits, kind)

    def write(self, warp, word, values, lanes):
        values = np.asarray(values)
        if values.dtype == np.float32:
            values = values.view(np.uint32)
        bits = values.astype(np.uint64)
        old = warp.registers.get(word)
        warp.registers[word] = np.where(lanes, bits, old if old is not None else 0).astype(np.uint64)

    def address(self, warp, word, kind="u64"):
        base, _, offset = word.strip("[]").partition("+")
        return self.read(warp, base.strip(), kind).astype(np.int64) + (int(offset) if offset else 0)

    def place(self, address, count):
        """(array of bytes, index) of `count` bytes in global memory."""
        for (name, base), value in zip(self.addresses.items(), self.arguments.values()):
            if base <= address < base + (1 << 39) and isinstance(value, np.ndarray):
                data, at = value.reshape(-1).view(np.uint8), address - base
                if at + count > data.size or address % min(count, 16):
                    raise Fault(f"global access of {count} bytes at {name} + {at}, which has {data.size}")
                return data, at
        raise Fault(f"global access at {address:#x}, where nothing lies")

    def window(self, address, count):
        if address % min(count, 16) or not 0 <= address - SHARED_BASE <= self.shared.size - count:
            raise Fault(f"shared access of {count} bytes at {address:#x}")
        return slice(address - SHARED_BASE, address - SHARED_BASE + count)

    def take_turn(self):
        """Each warp as far as it comes; False when all have ended."""
        if not any(warp.alive.any() for warp in self.warps):
            return False
        moved = False
        for i in self.random.permutation(len(self.warps)):
            warp = self.warps[i]
            while warp.alive.any() and self.step(warp):
                moved = True
        if not moved:
            where = [(w.number, self.code[w.pc[w.alive].min()][1]) for w in self.warps if w.alive.any()]
            raise Fault(f"deadlock: {where}")
        return True

    def step(self, warp):
        """Runs one instruction; False when it must wait."""
        if (warp.stalled == warp.alive).all():  # lanes that parted are together again
            warp.pc[warp.stalled] += 1
            warp.stalled[:] = False
        ready = warp.alive & ~warp.stalled
        ready &= warp.turns == warp.turns[ready].min()
        pc = warp.pc[ready].min()
        if pc >= len(self.code):
            raise Fault("runs past the end")
        lanes = ready & (warp.pc == pc)
        guard, op, operands = self.code[pc]
        if guard:
            flags = self.read(warp, guard[1], "pred")
            lanes = lanes & (flags != guard[0])
        if op.startswith("bar.warp"):
            warp.stalled |= lanes
            return True
        try:
            if not op.startswith("bra") and lanes.any():
                together = ".aligned" in op or ".sync" in op or op.startswith("bar.")
                if together and not (lanes == warp.alive).all():
                    raise Fault("lanes of a warp have parted")
                if not self.execute(warp, op, operands, lanes):
                    return False
        except Fault as fault:
            raise Fault(f"{op} {', '.join(operands)[:100]}: {fault}") from None
        if op.startswith("bra"):
            warp.pc[ready & (warp.pc == pc)] += 1
            warp.pc[lanes] = self.labels[operands[0]]
            warp.turns[lanes] += self.labels[operands[0]] <= pc
        elif op == "ret":
            warp.alive &= ~lanes
        else:
            warp.pc[ready & (warp.pc == pc)] += 1
        return True

    def execute(self, warp, op, operands, lanes):
        parts = op.split(".")
        head = parts[0]
        if op.startswith(("fence.", "setmaxnreg", "wgmma.fence", "wgmma.commit", "wgmma.wait", "cp.async.commit",
                          "cp.async.wait", "ret")):
            return True
        for prefix, method in (("wgmma", "wgmma"), ("mbarrier", "mbarrier"), ("cp.async", "copy"), ("ldmatrix", "matrix"),
                               ("stmatrix", "matrix"), ("mma", "mma"), ("shfl", "shuffle"), ("bar.", "sync"), ("atom.", "atomic")):
            if op.startswith(prefix):
                return getattr(self, method)(warp, op, operands, lanes)
        if head in ("ld", "st"):
            return self.memory(warp, op, operands, lanes)
        kind = parts[-1]
        if head == "mov" and "{" in operands[1]:
            low, high = (self.read(warp, word.strip(), "u16") for word in operands[1].strip("{}").split(","))
            result = low.astype(np.uint64) | high.astype(np.uint64) << np.uint64(16)
        elif head == "cvta":
            result = self.read(warp, operands[1], "u64")
        elif head == "cvt":
            result = convert(parts, [self.read(warp, word, parts[-1]) for word in operands[1:]])
        elif head == "setp":
            a, b = (self.read(warp, word, kind) for word in operands[1:3])
            result = compare(parts[1], a, b)
        elif head == "selp":
            a, b = (self.read(warp, word, kind) for word in operands[1:3])
            result = np.where(self.read(warp, operands[3], "pred"), a, b)
        else:
            result = arithmetic(parts, [self.read(warp, word, kind) for word in operands[1:]], operands)
        self.write(warp, operands[0], result, lanes)
        return True

    def memory(self, warp, op, operands, lanes):
        parts = op.split(".")
        store = parts[0] == "st"
        words = operands[1 if store else 0].strip("{}").split(",")
        size = int(re.sub(r"\D", "", parts[-1])) // 8
        where = operands[0 if store else 1]
        if parts[1] == "param":
            self.write(warp, operands[0], np.full(32, self.addresses[where.strip("[]")], np.uint64), lanes)
            return True
        addresses = self.address(warp, where, "u32" if parts[1] == "shared" else "u64")
        values = [self.read(warp, word.strip(), "u64") if store or word.strip() in warp.registers
                  else np.zeros(32, np.uint64) for word in words]
        values = [value.copy() for value in values]
        for lane in np.flatnonzero(lanes):
            count = size * len(words)
            if parts[1] == "shared":
                data, at = self.shared, self.window(int(addresses[lane]), count).start
            else:
                data, at = self.place(int(addresses[lane]), count)
            for i, value in enumerate(values):
                piece = slice(at + i * size, at + (i + 1) * size)
                if store:
                    data[piece] = np.frombuffer(int(value[lane]).to_bytes(8, "little")[:size], np.uint8)
                else:
                    value[lane] = int.from_bytes(data[piece].tobytes(), "little")
        if not store:
            for word, value in zip(words, values):
                self.write(warp, word.strip(), value, lanes)
        return True

    def atomic(self, warp, op, operands, lanes):
        if not op.endswith(".global.inc.u32"):
            raise Fault("an atomic that is not known here")
        addresses, largest = self.address(warp, operands[1]), self.read(warp, operands[2], "u32")
        before = np.zeros(32, np.uint64)
        for lane in np.flatnonzero(lanes):
            data, at = self.place(int(addresses[lane]), 4)
            before[lane] = int.from_bytes(data[at:at + 4].tobytes(), "little")
            after = 0 if before[lane] >= largest[lane] else int(before[lane]) + 1
            data[at:at + 4] = np.frombuffer(after.to_bytes(4, "little"), np.uint8)
        self.write(warp, operands[0], before, lanes)
        return True

    def shuffle(self, warp, op, operands, lanes):
        values = self.read(warp, operands[1], "u32")
        amount = int(operands[2])
        source = LANES ^ amount if ".bfly" in op else np.full(32, amount)
        self.write(warp, operands[0], values[source], lanes)
        return True

    def sync(self, warp, op, operands, lanes):
        number, threads = int(self.read(warp, operands[0], "u32")[0]), int(operands[1])
        key = (number, warp.number)
        if op.startswith("bar.sync") and self.named.get(key) == "passed":
            del self.named[key]
            return True
        if self.named.get(key) == "waits":
            return False
        arrived = self.named.setdefault(number, [])
        arrived.append(warp.number if op.startswith("bar.sync") else None)
        if op.startswith("bar.sync"):
            self.named[key] = "waits"
        if 32 * len(arrived) == threads:
            for other in arrived:
                if other is not None:
                    self.named[(number, other)] = "passed"
            self.named[number] = []
        return self.sync(warp, op, operands, lanes) if op.startswith("bar.sync") else True

    def mbarrier(self, warp, op, operands, lanes):
        word = operands[0] if op.startswith("mbarrier.init") else operands[1]
        addresses = self.address(warp, word, "u32")
        if ".try_wait" in op:
            parity = self.read(warp, operands[2], "u32")
            self.known(addresses[lanes][0])
            done = self.barriers[int(addresses[lanes][0])].phase != parity[lanes][0]
            self.write(warp, operands[0], np.full(32, done), lanes)
            return bool(done)
        for lane in np.flatnonzero(lanes):
            at = int(addresses[lane])
            if ".init" in op:
                self.window(at, 8)
                self.barriers[at] = Barrier(int(self.read(warp, operands[1], "u32")[lane]))
                continue
            barrier = self.known(at)
            if ".expect_tx" in op:
                barrier.bytes += int(self.read(warp, operands[2], "u32")[lane])
            if barrier.pending == 0:
                raise Fault("one arrival too many")
            barrier.pending -= 1
            barrier.settle()
        return True

    def known(self, address):
        if int(address) not in self.barriers:
            raise Fault(f"no barrier at {int(address):#x}")
        return self.barriers[int(address)]

    def copy(self, warp, op, operands, lanes):
        to = self.address(warp, operands[0], "u32")
        for lane in np.flatnonzero(lanes):
            if op.startswith("cp.async.mbarrier"):  # this thread's copies have come
                barrier = self.known(int(to[lane]))
                if barrier.pending == 0:
                    raise Fault("one arrival too many")
                barrier.pending -= 1
                barrier.settle()
                continue
            if ".tensor" in op:
                inner = [word.strip() for word in re.split(r"[{},]", operands[1].strip("[]")) if word.strip()]
                tensor = self.arguments[self.name_of(int(self.read(warp, inner[0], "u64")[lane]))]
                start = [int(self.read(warp, word, "s32")[lane]) for word in inner[1:]]
                count = self.load_box(tensor, start, int(to[lane]))
            elif ".bulk" in op:
                count = int(self.read(warp, operands[2], "u32")[lane])
                data, at = self.place(int(self.address(warp, operands[1])[lane]), 16)
                self.shared[self.window(int(to[lane]), 16).start:][:count] = data[at:at + count]
            else:
                whole, size = int(operands[2]), int(self.read(warp, operands[3], "u32")[lane])
                if whole not in ((16,) if ".cg" in op else (4, 8, 16)) or size > whole:
                    raise Fault(f"no cp.async of {size} of {whole} bytes")
                self.shared[self.window(int(to[lane]), whole)] = 0
                if size:
                    data, at = self.place(int(self.address(warp, operands[1])[lane]), whole)
                    self.shared[self.window(int(to[lane]), whole).start:][:size] = data[at:at + size]
                continue
            barrier = self.known(self.address(warp, operands[-1], "u32")[lane])
            barrier.bytes -= count
            barrier.settle()
        return True

    def name_of(self, address):
        return next(name for name, base in self.addresses.items() if base == address)

    def load_box(self, tensor, start, to):
        if to % 128:
            raise Fault("a box must start at a multiple of 128 bytes")
        sizes = tensor.array.shape[::-1]
        size = tensor.array.itemsize
        if start[0] * size % 16:
            raise Fault("a box must start at a multiple of 16 bytes along the innermost dimension")
        if tensor.swizzle and tensor.box[0] * size > tensor.swizzle:
            raise Fault("a box row is wider than its swizzle")
        for number, index in enumerate(np.ndindex(*tensor.box[::-1])):
            place = [s + i for s, i in zip(start, index[::-1])]
            inside = all(0 <= p < n for p, n in zip(place, sizes))
            value = tensor.array[tuple(place[::-1])] if inside else tensor.array.dtype.type(0)
            at = swizzled(to + number * size, tensor.swizzle)
            self.shared[self.window(at, size)] = np.frombuffer(value.tobytes(), np.uint8)
        return int(np.prod(tensor.box)) * size

    def matrix(self, warp, op, operands, lanes):
        load = op.startswith("ld")
        words = [word.strip() for word in operands[0 if load else 1].strip("{}").split(",")]
        rows = self.address(warp, operands[1 if load else 0], "u32")
        for part, word in enumerate(words):
            places = [self.window(int(rows[8 * part + i]), 16) for i in range(8)]
            if not load:
                pairs = self.read(warp, word, "u32").astype(np.uint32).reshape(8, 4)
                for i, place in enumerate(places):
                    self.shared[place] = pairs[i].view(np.uint8)
                continue
            eight = np.stack([self.shared[place].view(np.uint16) for place in places])
            if ".trans" in op:
                eight = eight.T.copy()
            self.write(warp, word, eight.view(np.uint32).reshape(32), lanes)
        return True

    def mma(self, warp, op, operands, lanes):
        d, a, b, c = ([word.strip() for word in operand.strip("{}").split(",")] for operand in operands)
        left, right = np.zeros((16, 16), np.float32), np.zeros((16, 8), np.float32)
        group, pair = LANES // 4, 2 * (LANES % 4)
        for i, word in enumerate(a):
            bits = self.read(warp, word, "u32")
            for e in range(2):
                left[group + 8 * (i % 2), pair + 8 * (i // 2) + e] = from_bf16(bits >> (16 * e) & 0xFFFF)
        for i, word in enumerate(b):
            bits = self.read(warp, word, "u32")
            for e in range(2):
                right[pair + 8 * i + e, group] = from_bf16(bits >> (16 * e) & 0xFFFF)
        product = left @ right
        for i, (to, start) in enumerate(zip(d, c)):
            sums = self.read(warp, start, "f32") + product[group + 8 * (i // 2), pair + i % 2]
            self.write(warp, to, sums, lanes)
        return True

    def wgmma(self, warp, op, operands, lanes):
        """Waits for the four warps of a warpgroup, then does all their parts."""
        key = warp.number // 4
        waiting = self.groups.setdefault(key, {})
        pc = int(warp.pc[warp.alive].min())
        if waiting.get(warp.number) == "done":
            del waiting[warp.number]
            return True
        waiting[warp.number] = pc
        if len(waiting) < 4 or "done" in waiting.values():
            return False
        if len(set(waiting.values())) != 1:
            raise Fault("warps of a warpgroup stand at different products")
        self.product([self.warps[4 * key + i] for i in range(4)], op, operands)
        for other in waiting:
            waiting[other] = "done"
        return self.wgmma(warp, op, operands, lanes)

    def product(self, warps, op, operands):
        columns = int(re.search(r"n(\d+)k16", op)[1])
        words = [word.strip() for word in operands[0].strip("{}").split(",")]
        if len(words) != columns // 2:
            raise Fault("wrong number of accumulators")
        group, pair = LANES // 4, 2 * (LANES % 4)
        registers = operands[1].startswith("{")
        adds = bool(self.read(warps[0], operands[3], "pred")[0])
        flags = [int(flag) for flag in operands[4:]]
        if len(flags) != (3 if registers else 4) or flags[:2] != [1, 1]:
            raise Fault("wrong flags")
        b = self.operand(warps[0], operands[2], columns, flags[-1])
        if registers:
            a = np.zeros((64, 16), np.float32)
            for w, warp in enumerate(warps):
                for i, word in enumerate(operands[1].strip("{}").split(",")):
                    bits = self.read(warp, word.strip(), "u32")
                    for e in range(2):
                        a[16 * w + group + 8 * (i % 2), pair + 8 * (i // 2) + e] = from_bf16(bits >> (16 * e) & 0xFFFF)
        else:
            a = self.operand(warps[0], operands[1], 64, flags[2])
        product = a @ b.T
        everyone = np.ones(32, bool)
        for w, warp in enumerate(warps):
            for i, word in enumerate(words):
                part = product[16 * w + group + 8 * (i // 2 % 2), 8 * (i // 4) + pair + i % 2]
                if adds:
                    part = part + self.read(warp, word, "f32")
                self.write(warp, word, part, everyone)

    def operand(self, warp, word, rows, transposed):
        """`rows` x 16 k: what a matrix descriptor names."""
        bits = int(self.read(warp, word, "u64")[0])
        start, leading, stride = ((bits >> shift & 0x3FFF) << 4 for shift in (0, 16, 32))
        swizzle = {0: 0, 1: 128, 2: 64, 3: 32}[bits >> 62]
        if bits >> 49 & 7:
            raise Fault("a base offset")
        n, k = np.meshgrid(np.arange(rows), np.arange(16), indexing="ij")
        if transposed and swizzle:
            width = swizzle // 2
            offset = n % width * 2 + n // width * leading + k % 8 * swizzle + k // 8 * stride
        elif transposed:
            offset = n % 8 * 2 + n // 8 * stride + k % 8 * 16 + k // 8 * leading
        elif swizzle:
            offset = n % 8 * swizzle + n // 8 * stride + k * 2
        else:
            offset = n % 8 * 16 + n // 8 * stride + k % 8 * 2 + k // 8 * leading
        address = swizzled(start + offset, swizzle) - SHARED_BASE
        if address.min() < 0 or address.max() + 2 > self.shared.size:
            raise Fault("a descriptor that leaves shared memory")
        return from_bf16(self.shared.view(np.uint16)[address // 2])


def swizzled(address, swizzle):
    if swizzle == 0:
        return address
    return address ^ ((address >> 7 & (swizzle // 16 - 1)) << 4)


def as_kind(bits, kind):
    if kind == "pred":
        return bits != 0
    if kind == "f32":
        return bits.astype(np.uint32).view(np.float32)
    width = int(re.sub(r"\D", "", kind) or 64)
    unsigned = bits.astype(f"u{width // 8}")
    return unsigned.view(f"i{width // 8}") if kind[0] == "s" else unsigned


def compare(name, a, b):
    name = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(name, name)
    ordered = ~(np.isnan(a) | np.isnan(b)) if a.dtype == np.float32 else True
    result = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
    if name in result:
        return result[name] & ordered
    return result[name[:2]] | ~np.asarray(ordered)  # unordered: ltu, gtu, ...


def convert(parts, values):
    if "bf16x2" in parts:
        high, low = (to_bf16(value).astype(np.uint64) for value in values)
        return low | high << np.uint64(16)
    if "bf16" in parts and parts[-1] == "f32":
        return to_bf16(values[0])
    to = parts[-2]
    if to == "f32":
        return values[0].astype(np.float32) if parts[-1] != "bf16" else from_bf16(values[0])
    return as_kind(values[0].astype(np.int64 if parts[-1][0] == "s" else np.uint64).view(np.uint64), to)


def arithmetic(parts, v, operands):
    head, kind = parts[0], parts[-1]
    with np.errstate(all="ignore"):
        if kind == "f32":
            table = {"mov": lambda a: a, "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.fmax,
                     "min": np.fmin, "div": np.divide, "neg": np.negative, "abs": np.abs, "sqrt": np.sqrt,
                     "ex2": np.exp2, "lg2": np.log2, "rcp": lambda a: np.float32(1) / a,
                     "fma": lambda a, b, c: (a.astype(np.float64) * b + c)}
            return np.asarray(table[head](*v)).astype(np.float32)
        if head in ("mul", "mad") and "wide" in parts:
            half, full = int(kind[1:]), 2 * int(kind[1:])
            v = [x.astype(f"{'i' if kind[0] == 's' else 'u'}{full // 8}") for x in v]
        if head == "mul" and "hi" in parts:
            return (v[0].astype(object) * v[1].astype(object) >> int(kind[1:])).astype(v[0].dtype)
        if head == "bfe":
            start, length = int(operands[2]), int(operands[3])
            return v[0] >> start & ((1 << length) - 1)
        if head in ("shl", "shr"):
            amount = v[1].astype(np.uint64) & np.uint64(0xFFFFFFFF)
            return v[0] << amount.astype(v[0].dtype) if head == "shl" else v[0] >> amount.astype(v[0].dtype)
        if kind == "pred":
            return {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor, "not": np.logical_not,
                    "mov": lambda a: a}[head](*v)
        table = {"mov": lambda a: a, "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
                 "mad": lambda a, b, c: a * b + c, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
                 "xor": lambda a, b: a ^ b, "not": lambda a: ~a, "neg": lambda a: -a, "max": np.maximum,
                 "min": np.minimum, "div": lambda a, b: a // b, "rem": lambda a, b: a % b}
        result = table[head](*v)
        return result.view(f"u{result.dtype.itemsize}") if result.dtype.kind == "i" else result


def launch(text, arguments, threads, ctas=1, grid=None, seed=0):
    """CTAs in turns, so that each gets some of what a counter hands out."""
    memory = variables(text)
    running = [Cta(text, arguments, cta, grid or ctas, threads, seed + cta, memory) for cta in range(ctas)]
    while running:
        running = [cta for cta in running if cta.take_turn()]
    for name, value in memory.items():
        if value.any():
            raise Fault(f"{name} is {value.view(np.uint32)} after the launch, so the next one does not start as this did")

"""run_log.py RUN CSV FOLDER           the CSV and the event file hold what log.jsonl holds
run_log.py RUN RUN DIFF.json --diff    relative differences of tensors, by NumPy

The event file is decoded here by hand: records, their sums by a table made from the
polynomial bit by bit, protocol buffers field by field."""

import csv
import glob
import json
import os
import struct
import sys

import numpy as np


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    with open(path, "rb") as file:
        while head := file.read(12):
            length, check = struct.unpack("<QI", head)
            assert check == masked(head[:8])
            data = file.read(length)
            assert struct.unpack("<I", file.read(4))[0] == masked(data)
            yield data


def fields(data):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(tag & 7) or varint()
            yield tag >> 3, data[at : at + size]
            at += size


def lines_of(run):
    with open(os.path.join(run, "log.jsonl")) as file:
        return [json.loads(line) for line in file]


def flat(value, key=""):
    if isinstance(value, (int, float)):
        yield key, float(value)
    elif isinstance(value, (dict, list)):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from flat(part, f"{key}/{name}" if key else str(name))


def numbers(line):
    return dict(flat({k: v for k, v in line.items() if k not in ("kind", "step")}))


def check_log(run, table, folder):
    lines = lines_of(run)
    assert {line["kind"] for line in lines} >= {"train", "eval"}
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(lines)
    for row, line in zip(rows, lines):
        assert row["kind"] == line["kind"] and int(row["step"]) == line["step"]
        found = {k: float(v) for k, v in row.items() if v and k not in ("kind", "step")}
        assert found == numbers(line), (found, numbers(line))
    (path,) = glob.glob(os.path.join(folder, "events.out.tfevents.*"))
    events = [list(fields(data)) for data in records(path)]
    assert dict(events[0])[3] == b"brain.Event:2" and len(events) == len(lines) + 1
    times = [struct.unpack("<d", dict(event)[1])[0] for event in events]
    assert times == sorted(times) and abs(times[0] - os.path.getmtime(os.path.join(run, "run.weft"))) < 1, times
    for event, line in zip(events[1:], lines):
        event = dict(event)
        assert event[2] == line["step"]
        values = [dict(fields(value)) for number, value in fields(event[5]) if number == 1]
        found = {value[1].decode(): struct.unpack("<f", value[2])[0] for value in values}
        expected = {f"{line['kind']}/{key}": float(np.float32(value)) for key, value in numbers(line).items()}
        assert found == expected, (found, expected)


def tensors(run):
    (path,) = glob.glob(os.path.join(run, "checkpoints/step-00000006/model.safetensors"))
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, body = json.loads(file.read(length)), file.read()
    header.pop("__metadata__")
    return {k: np.frombuffer(body[slice(*v["data_offsets"])], np.float32).astype(np.float64) for k, v in header.items()}


def check_diff(left, right, path):
    with open(path) as file:
        found = json.load(file)
    a, b = tensors(left), tensors(right)
    assert sorted(t["name"] for t in found["tensors"]) == sorted(a) and found["unlike"] == []
    for tensor in found["tensors"]:
        x, y = a[tensor["name"]], b[tensor["name"]]
        assert np.isclose(tensor["relative"], np.linalg.norm(y - x) / np.linalg.norm(x), rtol=1e-9), tensor
        assert tensor["largest"] == np.abs(y - x).max(), tensor
    assert [run["step"] for run in found["runs"]] == [6, 6]
    assert found["runs"][0]["held_out"] == [line["loss"] for line in lines_of(left) if line["kind"] == "eval"][-1]


if sys.argv[-1] == "--diff":
    check_diff(*sys.argv[1:4])
else:
    check_log(*sys.argv[1:4])

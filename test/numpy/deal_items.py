#!/usr/bin/python3
"""How evenly attention's items fall on blocks of threads, by three ways of dealing them.

An item is a tile of rows of one head; its time is counted in blocks that its rows
see, and OVER for what each item costs besides. Items stand in sections (heads
whose keys and values fit the cache together), longest tiles first. Printed is the
time of the busiest block of threads over the mean: 1 is even.

  fixed    a section's items dealt to and fro, as kernels without a producer do
  free     in the same order, each item to the block of threads that is free first
  sorted   as free, but each section sorted by time, longest first
"""

import heapq

CTAS, OVER, CACHE, CHANNELS, HEADS = 132, 0.6, 40 << 20, 64, 12
MIX = [1 / 8] * 8 + [1 / 4] * 2 + [1 / 2, 1]  # windows, of the length


def sections(length, batch, windows, rows, block, keys):
    """Lists of the items' times; `keys`: items are tiles of keys, else of queries."""
    tiles, pairs = -(-length // rows), batch * HEADS
    size = max(1, min(CACHE // (4 * length * CHANNELS), pairs))
    while pairs % size:
        size -= 1

    def time(window, tile):
        first, last = tile * rows, min(length, (tile + 1) * rows) - 1
        low, high = (first, min(length - 1, last + window - 1)) if keys else (max(0, first - window + 1), last)
        return high // block - low // block + 1 + OVER

    for start in range(0, pairs, size):
        order = range(tiles) if keys else reversed(range(tiles))
        yield [time(windows[pair % HEADS], tile) for tile in order for pair in range(start, start + size)]


def fixed(parts):
    busy = [0.0] * CTAS
    for number, times in enumerate(parts):
        turn = number * CTAS // len(parts)
        for cta in range(CTAS):
            forth = (cta + turn) % CTAS
            for at in range(0, len(times), CTAS):
                place = at + (forth if at // CTAS % 2 == 0 else CTAS - 1 - forth)
                busy[cta] += times[place] if place < len(times) else 0
    return busy


def free(parts):
    busy = [0.0] * CTAS
    for times in parts:
        for time in times:
            heapq.heapreplace(busy, busy[0] + time)
    return busy


def evenness(busy):
    return max(busy) * CTAS / sum(busy)


def main():
    print("length batch windows pass    fixed  free   sorted")
    for length, batch in ((4096, 16), (4096, 1), (16384, 4), (16384, 1)):
        for name, share in (("full", [1] * HEADS), ("mix", MIX)):
            windows = [int(length * part) for part in share]
            for label, rows, block, keys in (("forward", 192, 128, False), ("dk, dv", 128, 64, True)):
                parts = list(sections(length, batch, windows, rows, block, keys))
                ways = fixed(parts), free(parts), free([sorted(part, reverse=True) for part in parts])
                print(f"{length:6} {batch:5} {name:7} {label:7}", *(f"{evenness(way):6.3f}" for way in ways))


if __name__ == "__main__":
    main()

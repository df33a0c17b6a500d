#!/usr/bin/python3
"""Adds up what ctest and lit say they ran.

    summary.py FOLDER       ctest.log and lit.log there; prints `N passed, N failed`
    summary.py --self-check

Exits with 1 when a test failed, when none passed, or when a log does not end as it should.
"""
import re
import sys

GOOD = ("Passed", "Expectedly Failed")
BAD = ("Failed", "Unresolved", "Timed Out", "Unexpectedly Passed")


def summary(ctest, lit):
    """(passed, failed, what did not finish)."""
    passed = failed = 0
    unfinished = []
    found = re.search(r"tests passed, (\d+) tests? failed out of (\d+)", ctest)
    if found:
        failed += int(found[1])
        passed += int(found[2]) - int(found[1])
    else:
        unfinished.append("ctest")
    # lit lines its numbers up: "  Passed: 97 (97.98%)", "  Failed:  2 (2.02%)".
    counts = dict(re.findall(r"^ *(" + "|".join((*GOOD, "Unsupported", *BAD)) + r") *: *(\d+)", lit, re.M))
    passed += sum(int(counts.get(key, 0)) for key in GOOD)
    failed += sum(int(counts.get(key, 0)) for key in BAD)
    if not counts and "did not discover any tests" not in lit:
        unfinished.append("lit")
    return passed, failed + len(unfinished), unfinished


def self_check():
    """Catches counts that need one blank after the colon, and logs that were cut off."""
    ctest = "99% tests passed, 1 tests failed out of 114\n"
    lit = "Total Discovered Tests: 99\n  Passed: 97 (97.98%)\n  Failed:  2 (2.02%)\n"
    assert summary(ctest, lit) == (210, 3, []), summary(ctest, lit)
    padded = "  Unsupported        :  3 (3.00%)\n  Passed             : 96 (96.00%)\n  Unexpectedly Passed:  1 (1.00%)\n"
    assert summary("100% tests passed, 0 tests failed out of 5\n", padded) == (101, 1, [])
    assert summary("", lit) == (97, 3, ["ctest"])
    assert summary(ctest, "lit: error\n") == (113, 2, ["lit"])


def main():
    if sys.argv[1] == "--self-check":
        return self_check()
    logs = []
    for name in ("ctest.log", "lit.log"):
        with open(f"{sys.argv[1]}/{name}", errors="replace") as file:
            logs.append(file.read())
    passed, failed, unfinished = summary(*logs)
    for name in unfinished:
        print(f"test: {name} did not finish")
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed != 0 or passed == 0)


if __name__ == "__main__":
    main()

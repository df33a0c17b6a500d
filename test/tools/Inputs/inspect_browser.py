"""inspect_browser.py PAGE... [--limit SECONDS] [--corners] [--shots FOLDER]: opens pages in a headless Chromium, at the
width of a desk and of a phone, light and dark: no error, no request, every section drawn, nothing wider than the window,
and loaded within the limit (seconds of a processor: a busy machine fails nobody). Then it does what people do: opens IR,
searches, goes to a line, moves through a chart, the memory and the steps of a run."""

import argparse
import os
import sys

sys.dont_write_bytecode = True  # beside the sources
import browser

MODEL = ["summary", "source", "heads", "passes", "ledger", "kernels", "memory"]
RUN = ["summary", "curves", "windows", "freeze", "heads", "run", "source"]

arguments = argparse.ArgumentParser()
arguments.add_argument("pages", nargs="+")
arguments.add_argument("--limit", type=float, default=10)
arguments.add_argument("--corners", action="store_true", help="only the light desk and the dark phone")
arguments.add_argument("--shots")
options = arguments.parse_args()


def contrast(tab):
    """WCAG's ratio of the text's and the page's luminance."""
    def luminance(text):
        parts = [int(p) / 255 for p in text[text.index("(") + 1:-1].split(",")[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    two = sorted(luminance(tab.js(f"getComputedStyle(document.body).{name}")) for name in ["color", "backgroundColor"])
    return (two[1] + 0.05) / (two[0] + 0.05)


def look(tab, page, width, dark):
    kind = tab.js("page.kind")
    tab.draw_all()
    sections = tab.js("[...document.querySelectorAll('main > section')].map(s => s.id)")
    assert sections == (MODEL if kind == "model" else RUN), sections
    empty = tab.js("[...document.querySelectorAll('main > section')].filter(s => s.children.length < 2).map(s => s.id)")
    assert not empty, empty
    assert tab.js("document.querySelectorAll('h1').length") == 1
    # Whatever is wide scrolls in its own box.
    assert tab.js("document.documentElement.scrollWidth <= innerWidth"), (page, width, tab.js("document.documentElement.scrollWidth"))
    # Every control has a name.
    unnamed = tab.js("""[...document.querySelectorAll('button, select, input, [tabindex]')].filter(e =>
        !(e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label'))).map(e => e.outerHTML.slice(0, 90))""")
    assert not unnamed, unnamed
    assert contrast(tab) > 7, contrast(tab)
    background = tab.js("getComputedStyle(document.body).backgroundColor")
    assert (sum(int(x) for x in background[4:-1].split(",")) < 200) == dark, background
    return kind


def use_model(tab):
    # What the pass that adds most has added; the viewer draws what is near.
    tab.js("window.most = page.passes.findIndex(p => p.added === Math.max(...page.passes.slice(1).map(q => q.added)))")
    tab.js("irPanel.pick(most)")
    assert tab.js("document.querySelectorAll('.ir .add').length") > 3
    op, said = ("weft.attend", "attend") if tab.js("page.heads.sites.length") else ("weft.gather", "embed")
    # All of a text, and the line that an op came from.
    tab.js("[...document.querySelectorAll('#passes button')].find(b => b.textContent === 'whole').click()")
    tab.js("""{ const s = document.querySelector('#passes input[type=search]'); s.value = 'OP'; s.dispatchEvent(new Event('input'));
             s.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'})); }""".replace("OP", op))
    hits = tab.js("document.querySelector('#passes [role=status]').textContent")
    # 'N of M', as often as the text that the page holds says it.
    wanted = tab.js("wholeRows(page.passes[most].text).filter(r => lineText(r.k, r.row).includes('OP')).length".replace("OP", op))
    assert hits == f"1 of {wanted:,}" and wanted > 0, (hits, wanted)
    line = tab.js("document.querySelector('.ir .here .src a').getAttribute('href')")
    tab.js(f"location.hash = '{line}'")
    tab.js("new Promise(done => setTimeout(done, 100))")
    assert said in tab.js("document.querySelector('.code .at').textContent"), line
    # From a line to its ops.
    tab.js("document.querySelector('.code .cost button').click()")
    assert tab.js("document.querySelectorAll('.ir .hit').length") > 0
    # The arena by keys.
    tab.js("document.querySelector('#memory canvas').focus()")
    tab.key("ArrowRight")
    assert "bytes at" in tab.js("document.getElementById('tip').textContent")
    largest = tab.js("Math.max(...page.memory.programs.toSorted((a, b) => b.arena - a.arena)[0].buffers.map(b => b[2])).toLocaleString('en-US')")
    assert largest + " bytes" in tab.js("document.getElementById('tip').textContent")
    # A table sorts by what its head says.
    tab.js("[...document.querySelectorAll('#kernels th button')].find(b => b.textContent === 'bytes').click()")
    first = tab.js("document.querySelector('#kernels tbody .num[data-exact$=bytes]').dataset.exact")
    assert first == tab.js("Math.max(...page.kernels.map(k => k.bytes)).toLocaleString('en-US')") + " bytes", first


def use_run(tab):
    if tab.js("document.querySelector('svg.chart') !== null"):
        tab.js("document.querySelector('svg.chart').focus()")
        tab.key("Home")
        tab.key("ArrowRight")
        assert tab.js("document.getElementById('tip').textContent").startswith("step "), tab.js("document.getElementById('tip').textContent")
    if tab.js("page.log.windows && page.log.windows.frames.length > 1"):
        tab.js("{ const s = document.querySelector('input[type=range]'); s.value = 0; s.dispatchEvent(new Event('input')); }")
        step = tab.js("page.log.windows.frames[0][0]")
        assert tab.js("document.querySelector('#windows output').textContent") == f"step {step:,}"
        cells = tab.js("[...document.querySelectorAll('#windows td')].map(c => c.textContent)")
        assert cells == tab.js("frameWindows(page.log.windows, 0).flat().map(windowText)"), cells


slowest = 0
with browser.Browser() as chromium:
    for page in options.pages:
        for width, height in [(1400, 900), (360, 740)]:
            for dark in [width < 600] if options.corners else [False, True]:
                tab = chromium.open(page, width, height, dark)
                slowest = max(slowest, tab.seconds)
                kind = look(tab, page, width, dark)
                if options.shots:
                    name = os.path.splitext(os.path.basename(page))[0]
                    tab.screenshot(f"{options.shots}/{name}-{width}-{'dark' if dark else 'light'}.png", whole=True)
                if options.corners or not dark:
                    (use_model if kind == "model" else use_run)(tab)
                assert not tab.errors and not tab.requests, (page, tab.errors, tab.requests)
                tab.close()
assert slowest < options.limit, f"{slowest:.2f} s to load, at most {options.limit} are allowed"
print(f"{len(options.pages)} pages as they should be, the slowest in {slowest:.2f} s")

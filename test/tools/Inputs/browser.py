"""A headless Chromium, spoken to over a pipe (the DevTools protocol); standard library only."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]


def find():
    """Its path ($WEFT_CHROMIUM first), or None."""
    return os.environ.get("WEFT_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="weft-browser-")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def set_pipes():  # the protocol wants 3 to read and 4 to write
            high_in, high_out = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-extensions", "--user-data-dir=" + self.folder, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=set_pipes,
            close_fds=False)
        os.close(theirs_in)
        os.close(theirs_out)
        self.reads, self.writes, self.buffer, self.number, self.events = ours_in, ours_out, b"", 0, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.reads)
        os.close(self.writes)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _message(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.reads], [], [], max(0, deadline - time.time()))
            part = os.read(self.reads, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("the browser does not answer")
            self.buffer += part
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def call(self, method, session=None, seconds=120, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        deadline = time.time() + seconds
        while True:
            answer = self._message(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, event, session, seconds=120):
        deadline = time.time() + seconds
        while not any(e.get("method") == event and e.get("sessionId") == session for e in self.events):
            self.events.append(self._message(deadline))

    def open(self, path, width=1400, height=900, dark=False, fragment=""):
        return Tab(self, path, width, height, dark, fragment)


class Tab:
    """A page that is loaded. `errors`: what it threw, logged as an error, or was refused. `seconds`: of a processor, that
    the page's thread took until it was loaded and what is in view was drawn (other work of the machine does not count);
    `wall`: by the clock."""

    def __init__(self, browser, path, width, height, dark, fragment):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(domain + ".enable")
        self.call("Performance.enable", timeDomain="threadTicks")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                            {"name": "prefers-reduced-motion", "value": "reduce"}])
        self.url = "file://" + os.path.abspath(path)
        self.call("Page.navigate", url=self.url + fragment)
        browser.wait("Page.loadEventFired", self.session)
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        metrics = {metric["name"]: metric["value"] for metric in self.call("Performance.getMetrics")["metrics"]}
        self.seconds = metrics["TaskDuration"]
        self.wall = self.js("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def js(self, expression):
        """The value of an expression; a promise is waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def draw_all(self):
        """Waits until every section is drawn."""
        self.js("new Promise(done => { const look = () => document.documentElement.dataset.drawn === 'all'"
                " ? done() : setTimeout(look, 20); look(); })")

    def screenshot(self, file, whole=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(file, "wb") as out:
            out.write(base64.b64decode(data))

    def key(self, key):
        for kind in ["keyDown", "keyUp"]:
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                      windowsVirtualKeyCode={"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "Enter": 13}.get(key, 0))

    @property
    def errors(self):
        self.js("0")  # what happened before this is in
        found = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            method, parameters = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"].get("exception", {}).get("description", str(parameters)))
            if method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
                found.append(str(parameters["args"]))
            if method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
        return found

    @property
    def requests(self):
        """Addresses asked for beside the page itself."""
        self.js("0")
        return [event["params"]["request"]["url"] for event in self.browser.events
                if event.get("sessionId") == self.session and event["method"] == "Network.requestWillBeSent"
                and event["params"]["request"]["url"].split("#")[0] != self.url]

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
        self.browser.events = [e for e in self.browser.events if e.get("sessionId") != self.session]

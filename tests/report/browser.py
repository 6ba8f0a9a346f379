"""A headless Chromium and its pages, driven over the DevTools protocol through a pipe. Python 3.11, no packages."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")


def found():
    """The browser's path, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with one page after another. Messages are JSON that ends with a zero byte, on descriptors 3 and 4."""

    def __init__(self, path, scratch):
        ours_read, theirs_write = os.pipe()
        theirs_read, ours_write = os.pipe()

        def descriptors():
            # Copies above 4 first: one of the pipe's own may already be 3 or 4.
            read, write = os.dup(theirs_read), os.dup(theirs_write)
            high = [os.dup2(read, 50), os.dup2(write, 51)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [
                path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                # Any request that the page made in spite of its policy would have to fail.
                "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={scratch}", "--remote-debugging-pipe", "about:blank",
            ],
            preexec_fn=descriptors, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(theirs_read)
        os.close(theirs_write)
        self.read, self.write = ours_read, ours_write
        self.pending, self.number, self.session, self.events = b"", 0, None, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close", page=False)
        except (OSError, RuntimeError):
            self.process.kill()
        self.process.wait(timeout=30)

    def message(self, until):
        while b"\0" not in self.pending:
            if not select.select([self.read], [], [], max(0, until - time.monotonic()))[0]:
                raise RuntimeError("the browser does not answer")
            part = os.read(self.read, 1 << 20)
            if not part:
                raise RuntimeError("the browser ended")
            self.pending += part
        whole, self.pending = self.pending.split(b"\0", 1)
        return json.loads(whole)

    def call(self, method, page=True, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if page and self.session:
            request["sessionId"] = self.session
        sent = json.dumps(request).encode() + b"\0"
        while sent:
            sent = sent[os.write(self.write, sent):]
        until = time.monotonic() + 60
        while (answer := self.message(until)).get("id") != self.number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error'].get('message')}")
        return answer["result"]

    def open(self, page, width=1400, height=2600, dark=False, mobile=False):
        """Loads a page in a new tab and waits for its scripts; what its console says is in `complaints`."""
        if self.session:
            self.call("Page.close")
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.events = []
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)
        self.prefer("dark" if dark else "light")
        self.call("Browser.grantPermissions", page=False, permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        self.call("Page.navigate", url=page.as_uri())
        until = time.monotonic() + 60
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message(until))

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def complaints(self):
        """Uncaught errors, and what the console says as an error or a warning."""
        said = []
        for event in self.events:
            params = event.get("params", {})
            match event.get("method"):
                case "Runtime.exceptionThrown":
                    details = params["exceptionDetails"]
                    said.append(details.get("exception", {}).get("description") or details["text"])
                case "Log.entryAdded":
                    said.append(params["entry"]["text"])
                case "Runtime.consoleAPICalled":
                    said.append(" ".join(str(value.get("value")) for value in params["args"]))
        return said

    def run(self, script):
        """The value of an expression (promises are awaited) in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, userGesture=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def mouse(self, kind, x, y, **params):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **params)

    def move(self, x, y):
        self.mouse("mouseMoved", x, y)

    def click(self, x, y, count=1):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=count)

    def drag(self, start, end):
        self.move(*start)
        self.mouse("mousePressed", *start, button="left", clickCount=1, buttons=1)
        for part in (0.3, 0.7, 1):
            self.mouse("mouseMoved", *(a + part * (b - a) for a, b in zip(start, end)), button="left", buttons=1)
        self.mouse("mouseReleased", *end, button="left", clickCount=1)

    def screenshot(self, clip=None, whole=False):
        extra = {"clip": {**clip, "scale": 1}} if clip else {}
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **extra)["data"])

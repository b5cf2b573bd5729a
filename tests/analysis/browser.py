"""A headless Chromium, spoken to over a pipe: enough of its protocol to load, click and type."""

import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--headless=new", "--disable-gpu", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-dev-shm-usage")  # fmt: skip


def find():
    """Path of a Chromium; None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page at a time; ``problems`` are errors it logged and addresses it asked for."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # Chromium reads commands from its descriptor 3 and answers on 4.
        command_out, self.command = os.pipe()
        self.answers, answers_in = os.pipe()
        root = ("--no-sandbox",) if os.geteuid() == 0 else ()
        flags = (*FLAGS, *root, f"--user-data-dir={self.folder.name}", "--remote-debugging-pipe")
        # The two may be 3 or 4 themselves: they are moved out of the way first.
        script = f'exec 8<&{command_out} 9>&{answers_in} 3<&8 4>&9 8<&- 9>&-; exec "$0" "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", script, program, *flags, "about:blank"],
            pass_fds=(command_out, answers_in),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_out)
        os.close(answers_in)
        self.rest = b""
        self.ids = itertools.count(1)
        self.session = None
        self.events = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def close(self):
        self.process.terminate()
        self.process.wait(20)
        os.close(self.command)
        os.close(self.answers)
        self.folder.cleanup()

    def ask(self, method, **params):
        """Send a command and wait for its answer; events on the way are kept."""
        number = next(self.ids)
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.command, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        while b"\0" not in self.rest:
            more = os.read(self.answers, 1 << 16)
            assert more, "the browser went away"
            self.rest += more
        one, _, self.rest = self.rest.partition(b"\0")
        return json.loads(one)

    def load(self, path, width=1280, height=900, scheme="light", media=""):
        """Open a file at a width, in a colour scheme."""
        self.events.clear()
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)  # fmt: skip
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[feature])
        self.ask("Page.navigate", url=Path(path).resolve().as_uri())
        deadline = time.monotonic() + 60
        while self.evaluate("document.readyState") != "complete":
            assert time.monotonic() < deadline, "the page does not load"
        self.evaluate("new Promise(done => setTimeout(done, 50))")

    def evaluate(self, expression):
        """Value of an expression of JavaScript."""
        found = self.ask(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def key(self, name, text=""):
        """Press a key, as a user would."""
        codes = {"Enter": 13, "Tab": 9, "ArrowRight": 39, "End": 35, "Escape": 27}
        key = {"key": name, "code": name, "windowsVirtualKeyCode": codes[name]}
        self.ask("Input.dispatchKeyEvent", type="keyDown", text=text, **key)
        self.ask("Input.dispatchKeyEvent", type="keyUp", **key)

    def click(self, expression):
        """Click in the middle of an element."""
        box = self.evaluate(
            f"(e => {{ e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect();"
            f" return [b.x + b.width / 2, b.y + b.height / 2]; }})({expression})"
        )
        place = {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}
        self.ask("Input.dispatchMouseEvent", type="mousePressed", **place)
        self.ask("Input.dispatchMouseEvent", type="mouseReleased", **place)

    @property
    def problems(self):
        """Errors logged, and requests for anything but the file itself."""
        found = []
        for event in self.events:
            params = event.get("params", {})
            match event.get("method"):
                case "Runtime.exceptionThrown":
                    found.append(params["exceptionDetails"]["text"])
                case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                    found.append(params["entry"]["text"])
                case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning"):
                    found.append(str(params["args"]))
                case "Network.requestWillBeSent":
                    url = params["request"]["url"]
                    if not url.startswith(("file:", "data:", "about:")):
                        found.append(url)
        return found

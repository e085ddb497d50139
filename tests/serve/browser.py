"""A real browser, driven over a pipe: Chromium's own protocol, without another library.

Source: chromedevtools.github.io/devtools-protocol; --remote-debugging-pipe reads descriptor 3, writes 4.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def found() -> str | None:
    """The browser of this machine."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a headless Chromium."""

    def __init__(self, folder: Path, seconds: float = 60) -> None:
        self.seconds = seconds
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ]
        flags += ["--remote-debugging-pipe", f"--user-data-dir={folder}", "--hide-scrollbars", "about:blank"]
        shell = f'exec 3<&{to_read} 4>&{to_write}; exec "$0" "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, found() or "", *flags],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._kept, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        pages = self.send("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in pages if one["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask for something and wait for the answer."""
        self._number += 1
        number = self._number
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + self.seconds
        while True:
            read = self._read(until)
            if read.get("id") == number:
                assert "error" not in read, read
                return read["result"]
            self.events.append(read)

    def _read(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._kept:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self._in, 1 << 20)
            assert part, "the browser has ended"
            self._kept += part
        whole, _, self._kept = self._kept.partition(b"\0")
        return json.loads(whole)

    def open(self, address: str) -> None:
        """Go to a page."""
        self.send("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Until a condition holds in the page."""
        until = time.monotonic() + self.seconds
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < until, f"never came true: {condition}"
            time.sleep(0.05)

    def type(self, text: str) -> None:
        """Type where the focus is."""
        self.send("Input.insertText", text=text)

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press and let go one key."""
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown", **about, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **about)

    def point(self, selector: str, *, click: bool = False) -> None:
        """Move the mouse over the middle of an element, and click it."""
        box = self.run(
            f"""(() => {{ const found = document.querySelector({json.dumps(selector)});
            found.scrollIntoView({{block: "center"}});
            const b = found.getBoundingClientRect();
            return [b.x + b.width / 2, b.y + b.height / 2]; }})()"""
        )
        where = {"x": box[0], "y": box[1]}
        self.send("Input.dispatchMouseEvent", type="mouseMoved", **where)
        for name in ("mousePressed", "mouseReleased") if click else ():
            self.send("Input.dispatchMouseEvent", type=name, button="left", clickCount=1, **where)

    def upload(self, selector: str, path: Path) -> None:
        """Choose a file, as a visitor does in the dialogue that a browser opens."""
        root = self.send("DOM.getDocument")["root"]["nodeId"]
        node = self.send("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.send("DOM.setFileInputFiles", nodeId=node, files=[str(path)])

    def screen(self, width: int, height: int, *, dark: bool = False, phone: bool = False) -> None:
        """Another size, or the dark."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self) -> bytes:
        """A PNG of what is seen."""
        return base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])

    def complaints(self) -> list[str]:
        """What the page logged as an error."""
        self.run("1")
        logged = [one["params"] for one in self.events if one.get("method") == "Log.entryAdded"]
        thrown = [one["params"] for one in self.events if one.get("method") == "Runtime.exceptionThrown"]
        return [str(one) for one in logged if one["entry"]["level"] == "error"] + [str(one) for one in thrown]

    def addresses(self) -> set[str]:
        """Everything that the page asked for."""
        return {
            one["params"]["request"]["url"]
            for one in self.events
            if one.get("method") == "Network.requestWillBeSent"
        }

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(20)
        os.close(self._out)
        os.close(self._in)

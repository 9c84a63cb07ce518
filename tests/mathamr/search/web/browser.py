"""The page in headless Chromium, by what a user calls its parts."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
WITH_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="chromium and chromedriver are not installed"
)
BROWSER = [pytest.mark.browser, WITH_CHROMIUM]
PATIENCE = 60  # seconds that a busy machine may take
POLL = 0.05  # seconds


@contextmanager
def served(app: Any) -> Iterator[str]:
    """Serve an application in a thread; yields its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    server.should_exit = True
    thread.join()
    listener.close()


def open_chromium() -> Any:
    """Start a browser without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--window-size=1200,900"):
        options.add_argument(argument)
    # One process shows all pages, without another one in reserve.
    options.add_argument("--renderer-process-limit=1")
    options.add_argument("--disable-features=IsolateOrigins,site-per-process,SpareRendererForSitePerProcess")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # which Chromium cannot set up for root
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(str(DRIVER)))


class Page:
    """The page that a browser shows, by what a user calls its parts."""

    def __init__(self, driver: Any, home: str) -> None:
        self.driver = driver
        driver.get("about:blank")  # so that a new # after the address is a new page
        driver.get_log("browser")
        driver.get(home)
        self.until(lambda: self.all("#k option"))

    def all(self, selector: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements(By.CSS_SELECTOR, selector)
        return found

    def one(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def until(self, true: Callable[[], Any]) -> Any:
        return WebDriverWait(self.driver, PATIENCE, POLL).until(lambda _: true())

    def search(self, text: str) -> None:
        """Type ``text`` and Enter, and wait for results or an error."""
        query = self.one("#query")
        query.send_keys(Keys.CONTROL, "a")
        query.send_keys(text, Keys.ENTER)
        self.settle()

    def settle(self) -> None:
        self.until(lambda: self.one("#go").get_attribute("aria-busy") is None)

    def choose(self, select: str, text: str) -> None:
        self.driver.execute_script(
            "const [select, text] = arguments;"
            "select.selectedIndex = [...select.options].findIndex(option => option.text === text);"
            "select.dispatchEvent(new Event('change', {bubbles: true}));",
            self.one(select),
            text,
        )
        self.settle()

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    @contextmanager
    def shown_at(self, width: int, scheme: str) -> Iterator[None]:
        """Show the page at a width in pixels, in the ``light`` or ``dark`` colours."""
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
        media = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})
        try:
            yield
        finally:
            self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
            self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    def serious(self) -> list[str]:
        """Return what axe-core finds serious or critical."""
        package = find_spec("selenium_axe_python")
        if package is None or package.origin is None:
            pytest.skip("selenium-axe-python, which has axe-core, is not installed")
        self.driver.set_script_timeout(PATIENCE)
        self.driver.execute_script((Path(package.origin).parent / "axe-core/axe.min.js").read_text(encoding="utf-8"))
        options = "{selectors: false, resultTypes: ['violations']}"  # of the other rules, one node each
        run = f"const done = arguments[0]; axe.run({options}).then(done, error => done({{error: String(error)}}))"
        found = self.driver.execute_async_script(run)
        assert len(found.get("passes", [])) > 20, found  # it has looked
        return [
            f"{one['id']}: {one['help']}: {one['nodes'][0]['html']}"
            for one in found["violations"]
            if one["impact"] in ("serious", "critical")
        ]

# SPDX-License-Identifier: Apache-2.0
"""A browser that looks at the page of a vgpu-exporter."""
import urllib.parse

import case
import webdriver
from exporter import Exporter
from wait import until

# What a reader sees of the table: the texts of each row.
READ_TABLE = """
return Array.from(document.querySelectorAll('#vgpus tbody tr')).map(
        row => Array.from(row.cells).map(cell => cell.textContent));
"""

# A telephone, a tablet, a laptop, a large screen.
SIZES = ((360, 740), (820, 1180), (1280, 800), (2560, 1440))


class Browsing(case.Case):
    HOST = {"devices": "2xH200:512M", "pool": "128M", "slab": "4M"}
    OPTIONS = ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.exporter = Exporter(cls.host, *cls.OPTIONS)
        cls.addClassCleanup(cls.exporter.close)
        cls.browser = webdriver.Browser()
        cls.addClassCleanup(cls.browser.close)

    def open(self):
        self.browser.open(urllib.parse.urljoin(self.exporter.url, "/"))
        self.browser.complaints()

    def open_live(self):
        self.open()
        until(lambda: self.status() == "live, simulated GPUs", "the page to be live", context=self.status)

    def status(self):
        return self.browser.run("return document.getElementById('status').textContent")

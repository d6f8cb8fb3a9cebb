"""Take the picture of a report in the README: `python docs/_ext/report_picture.py`, with Chromium.

Runs the README's own example, and photographs the top of the report that it writes.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path

DOCS = Path(__file__).parents[1]

if __name__ == "__main__":
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```", readme, re.S)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(examples[0], {})
        browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        size, target = "--window-size=920,660", f"--screenshot={DOCS / '_static/report.png'}"
        subprocess.run([*browser, size, target, f"file://{folder}/report.html"], check=True)

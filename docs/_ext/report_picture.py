"""Make the picture and the PDF of the README's report: `python docs/_ext/report_picture.py`.

Runs the README's own example. Chromium photographs the top of the report that it writes, and prints
the whole.
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
        report = f"file://{folder}/report.html"
        size, target = "--window-size=920,690", f"--screenshot={DOCS / '_static/report.png'}"
        subprocess.run([*browser, size, target, report], check=True)
        target = f"--print-to-pdf={DOCS / '_static/report.pdf'}"
        subprocess.run([*browser, "--no-pdf-header-footer", target, report], check=True)

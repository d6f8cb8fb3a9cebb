"""Make the picture and the PDF of the README's report: `python docs/_ext/report_picture.py`.

Runs the README's own example. Chromium photographs the top of the report that it writes, and prints
the whole.
"""

import os
import subprocess
import tempfile
from pathlib import Path

from picture_parts import first_block_of_python

DOCS = Path(__file__).parents[1]
STATIC = DOCS / "_static"

if __name__ == "__main__":
    example = first_block_of_python(DOCS.parent / "README.md")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(example, {})
        browser = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        report = f"file://{folder}/report.html"
        picture = f"--screenshot={STATIC}/report.png"
        subprocess.run([*browser, "--window-size=920,690", picture, report], check=True)
        document = f"--print-to-pdf={STATIC}/report.pdf"
        subprocess.run([*browser, "--no-pdf-header-footer", document, report], check=True)

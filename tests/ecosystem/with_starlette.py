# /// script
# dependencies = ["starlette", "uvicorn"]
# ///
"""The page of examples/browser in Chromium: `@ag-ui/client` and `useChat`, two questions each, with a tool."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from scene import check, seen, skip

DRIVE = """
import { chromium } from "playwright-core";
const browser = await chromium.launch({ executablePath: process.argv[3], args: ["--no-sandbox"] });
const page = await browser.newPage();
await page.goto(process.argv[2]);
const said = {};
for (const id of ["ag-ui", "ai-sdk"]) {
  for (const turn of [1, 2]) {
    await page.click(`#${id} button`);
    await page.waitForFunction(([id, turn]) => document.getElementById(id).innerText.includes(`question ${turn}.`), [id, turn]);
    await page.waitForSelector(`#${id}[data-status=ready]`);
  }
  said[id] = await page.innerText(`#${id}`);
}
console.log(JSON.stringify(said));
await browser.close();
"""

npm, chromium = shutil.which("npm"), shutil.which("chromium") or shutil.which("google-chrome")
if npm is None or chromium is None:
    skip("it takes npm and Chromium")
place = Path.cwd() / "browser"
shutil.copytree(Path(__file__).parents[2] / "examples" / "browser", place)
subprocess.run(
    [npm, "install", "--no-audit", "--no-fund", "playwright-core"], cwd=place, check=True, capture_output=True
)
bundle = ["page.jsx", "--bundle", "--outfile=page.js", "--jsx=automatic", "--log-level=error"]
subprocess.run([place / "node_modules" / ".bin" / "esbuild", *bundle], cwd=place, check=True)
(place / "drive.mjs").write_text(DRIVE)
started = "import server, uvicorn; uvicorn.run(server.app, port=0, log_level='info')"
with subprocess.Popen([sys.executable, "-c", started], cwd=place, stderr=subprocess.PIPE, text=True) as server:
    try:
        address = next(found[0] for line in server.stderr if (found := re.search(r"http://[\d.:]+", line)))
        node = shutil.which("node", path=f"{Path(npm).parent}{os.pathsep}{os.environ['PATH']}") or "node"
        drive = [node, "drive.mjs", address, chromium]
        said = json.loads(subprocess.run(drive, cwd=place, check=True, capture_output=True, timeout=120).stdout)
    finally:
        server.kill()
for name, text in said.items():
    check(name, (text.count("rain in Oslo. That was question"), text.count("weather(")), (2, 2))
versions = [
    f"{name} {json.loads((place / 'node_modules' / name / 'package.json').read_text())['version']}"
    for name in ("@ag-ui/client", "ai", "@ai-sdk/react")
]
seen(f"answers and tool calls of both on the page, the second with the history of the first; {', '.join(versions)}")

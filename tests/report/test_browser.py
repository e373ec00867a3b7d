"""The page in a real browser, at the widths of a telephone and of a desk."""

import html
import http.server
import json
import re
import shutil
import subprocess
import threading

import numpy as np
import pytest

from pairflow.report import render
from pairflow.report.paper import Page
from pairflow.report.paper import render as render_paper

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--virtual-time-budget=5000",
]

# Headless windows have a least width of their own: a frame of the wanted width has not.
FRAME = """<!DOCTYPE html><meta charset="utf-8">
<iframe style="width: {width}px; height: 900px; border: 0" srcdoc="{page}"></iframe>
<script>
document.querySelector("iframe").addEventListener("load", event => {{
  const page = event.target.contentDocument, box = element => element.getBoundingClientRect();
  page.querySelectorAll("details").forEach(element => {{ element.open = true; }});
  const pictures = [...page.querySelectorAll("[role=img] svg")];
  const wide = [...page.querySelectorAll("body *")].filter(element =>
    !element.closest(".scroll, pre, svg") && box(element).right > {width} + 0.5);
  document.body.textContent = "RESULT" + JSON.stringify({{
    inner: event.target.contentWindow.innerWidth,
    scroll: page.documentElement.scrollWidth,
    wide: wide.map(element => element.tagName + "." + element.className),
    pictures: pictures.length,
    broken: pictures.filter(svg => box(svg).width < 40 || box(svg).height < 30).length
      + [...page.images].filter(image => !image.naturalWidth).length,
  }}) + "END";
}});
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here to open the report in")
@pytest.mark.parametrize("width", [400, 1280])
def test_no_overflow_and_no_broken_picture(make, metric_rows, coupling, tmp_path, width):
    long = "pairflow-sub" + 41 * "1" + "+redi+x"
    contents = make(
        experiment="e" * 60,
        settings={"methods": ["udlm", long]},
        metrics=metric_rows({"udlm": (84, 245, 437), long: (352, 498, 662)}),
        timings=make().timings.assign(method=long),
        couplings={long: coupling(np.ones(17))},
        samples={long: {1: ["CCO", "C" * 70, "(" * 70], 32: ["C1CC1"]}},
    )
    result = measure(render(contents), width, tmp_path)
    assert result["inner"] == width
    assert result["wide"] == []
    assert result["scroll"] <= width
    assert result["pictures"] >= 9
    assert result["broken"] == 0


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here to open the report in")
@pytest.mark.parametrize("width", [400, 1280])
def test_twelve_methods_fit(many, tmp_path, width):
    result = measure(render(many), width, tmp_path)
    assert result["inner"] == width
    assert result["wide"] == []
    assert result["scroll"] <= width
    assert result["broken"] == 0


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here to open the report in")
@pytest.mark.parametrize("side", [8, 28, 64])
@pytest.mark.parametrize("width", [400, 1280])
def test_images_fit_and_are_whole(make_images, tmp_path, width, side):
    random = np.random.default_rng(0)

    def pictures(*shape: int) -> np.ndarray:
        return random.integers(0, 256, (*shape, side, side, 3), dtype=np.uint8)

    contents = make_images(
        images={"udlm": {1: pictures(64), 1024: pictures(64)}, "pairflow": {1: pictures(3)}},
        pairs={"pairflow": (pictures(6), pictures(6, 3), pictures(6))},
        neighbours={"pairflow": (pictures(12), pictures(12), np.full(12, 12345.0))},
    )
    result = measure(render(contents), width, tmp_path)
    assert result["inner"] == width
    assert result["wide"] == []
    assert result["scroll"] <= width
    assert result["broken"] == 0


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here to open the report in")
def test_images_need_one_request_and_leave_the_console_empty(make_images, tmp_path):
    asked, page = [], render(make_images()).encode()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page)

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", "--enable-logging=stderr"]
        address = f"http://127.0.0.1:{server.server_port}/report.html"
        run = subprocess.run(
            [*command, "--dump-dom", address], capture_output=True, text=True, timeout=60, check=True
        )
        server.shutdown()
    assert "FD to the training images" in run.stdout
    assert asked == ["/report.html"]
    assert "CONSOLE" not in run.stderr


def measure(page: str, width: int, folder) -> dict:
    """Sizes of `page` in a frame of `width` pixels."""
    file = folder / "frame.html"
    file.write_text(FRAME.format(width=width, page=html.escape(page)))
    command = [
        CHROMIUM,
        *FLAGS,
        f"--user-data-dir={folder / 'profile'}",
        "--window-size=1600,1000",
        "--dump-dom",
    ]
    run = subprocess.run([*command, file.as_uri()], capture_output=True, text=True, timeout=60, check=True)
    found = re.search(r"RESULT(.*?)END", run.stdout)
    assert found, run.stderr
    return json.loads(html.unescape(found[1]))


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here to open the report in")
@pytest.mark.parametrize("width", [400, 1280])
def test_the_papers_tables_fit(tmp_path, width):
    result = measure(render_paper(Page({}, {}, ["n" * 200])), width, tmp_path)
    assert result["inner"] == width
    assert result["wide"] == []
    assert result["scroll"] <= width
    assert (result["pictures"], result["broken"]) == (1, 0)

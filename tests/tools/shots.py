"""Take screenshots of terminal, notebook, report and site, on a desktop and a phone, in light and dark mode.

`make shots` writes runs/shots/NAME-WIDTH-LOOK.png, and the report's picture in docs/first-hour.md. A page that is
wider than its screen is an error.
"""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import typer
import yaml
from rich.console import Console
from rich.text import Text

import edgefl
from tests.tools import chromium

SCENARIO = {
    "name": "first",
    "devices": {"count": 12},
    "radio": {"bandwidth_hz": 10.0e6},
    "sessions": {"name": "schedule", "count": 2, "rounds": 8},
    "learning": {
        "dataset": "digits",
        "partition": {"name": "dirichlet", "alpha": 0.5},
        "model": "logistic",
        "local": {"batch": 32, "lr": 0.01},
    },
}
COMMANDS = (
    ["--help"],
    ["compare", "study", "--target", "0.7"],
    ["costs", "run"],
    ["describe", "radio.bandwidth_hz"],
)
SITE = ("index.html", "first-hour/index.html", "energy/index.html", "reference-python/index.html")
WIDTHS, LONGEST = (1280, 390), 9000  # px
LOADED = "document.readyState === 'complete'"
FIRST_HOUR = Path("docs/first-hour.md")
HALFWAY = (
    "{ const at = document.getElementById('time'); at.value = 5000; at.dispatchEvent(new Event('input')) }"
)
BODY = "<body data-ready='true' style='font-family: system-ui, sans-serif; margin: 1rem'>"
HEAD = (
    "<!doctype html><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
    "<meta name='color-scheme' content='light dark'>"
)


def main(out: Path = Path("runs/shots"), site: Path = Path("site")) -> None:
    """Make the pages, and screenshots of each."""
    out.mkdir(parents=True, exist_ok=True)
    seen = _answers(out)
    pages = {
        "terminal": _terminal(out, 80),
        "terminal-narrow": _terminal(out, 44),
        "notebook": _notebook(seen),
        "report": seen[0].report(),
    }
    files = {name: page if isinstance(page, Path) else out / f"{name}.html" for name, page in pages.items()}
    for name, page in pages.items():
        if not isinstance(page, Path):
            files[name].write_text(f"{HEAD}{BODY}{page}", encoding="utf-8")
    files |= {
        f"site-{Path(page).parent.name or 'index'}": site / page for page in SITE if (site / page).exists()
    }
    wide = [shot for name, file in files.items() for shot in _shots(name, file, out)]
    _first_report(out)
    print("\n".join(wide) or f"{len(files)} pages in {out}")
    sys.exit(bool(wide))


def _answers(out: Path) -> tuple[edgefl.Results, edgefl.StudyResults]:
    """Return a run, simulated if it does not exist yet, and a study."""
    run, study = out / "run", out / "study"
    if not run.exists():
        edgefl.simulate(SCENARIO, run, device="cpu")
    variants = {
        "narrow": {"radio.bandwidth_hz": 5.0e6},
        "wide": None,
        "fedprox": {"learning.algorithm": "fedprox"},
    }
    return edgefl.Results(run), edgefl.study(SCENARIO, variants, seeds=[1, 2, 3], out=study, device="cpu")


def _first_report(out: Path) -> None:
    """Draw the picture of docs/first-hour.md: the report of the page's own scenario, halfway through its replay."""
    found = re.search(r"```yaml[^\n]*\n(.*?)```", FIRST_HOUR.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    run = out / "first"
    if not run.exists():
        edgefl.simulate(yaml.safe_load(found[1]), run, device="cpu")
    report = edgefl.Results(run).report()
    with chromium.browser() as page:
        page.open(report, 1160, dark=False, ready=chromium.REPORT_READY)
        page.js(HALFWAY)
        page.picture(FIRST_HOUR.parent / "first-report.png", 1160, 1180)


def _terminal(out: Path, columns: int) -> str:
    """Return the output of commands on a terminal of this width."""
    console = Console(record=True, width=columns, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    told = {**os.environ, "COLUMNS": str(columns), "FORCE_COLOR": "1"}
    for command in COMMANDS:
        console.print(f"$ edgefl {' '.join(command)}", style="bold", highlight=False)
        program = "from edgefl.commands.cli import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", program, *command],
            cwd=out,
            env=told,
            capture_output=True,
            text=True,
            check=True,
        )
        console.print(Text.from_ansi(done.stdout), "")
    page = console.export_html(inline_styles=True, code_format="<pre style='overflow-x: auto'>{code}</pre>")
    return page


def _notebook(seen: tuple[edgefl.Results, edgefl.StudyResults]) -> str:
    """Return the HTML that notebook cells with these values show."""
    shown = {
        "results": seen[0],
        "study": seen[1],
        "edgefl.compare(study)": edgefl.compare(seen[1]),
        "edgefl.costs(results)": edgefl.costs(seen[0]),
        "edgefl.load_scenario(...)": edgefl.load_scenario(SCENARIO),
    }
    return "".join(
        f"<pre>In: {html.escape(code)}</pre>{value._repr_html_()}<hr>" for code, value in shown.items()
    )


def _shots(name: str, file: Path, out: Path) -> list[str]:
    """Take the screenshots of a page; return complaints about screenshots wider than their screen."""
    wide = []
    with chromium.browser() as page:
        for width in WIDTHS:
            for dark in (False, True):
                page.open(file, width, dark=dark, ready=chromium.REPORT_READY if name == "report" else LOADED)
                across, down = page.js(
                    "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
                )
                target = out / f"{name}-{width}-{'dark' if dark else 'light'}.png"
                page.picture(target, width, min(down, LONGEST))
                if across > width:
                    wide.append(f"{target}: {across} px wide")
    return wide


if __name__ == "__main__":
    typer.run(main)

"""The command `edgefl doctor`, which checks whether edgefl can work on this machine."""

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import typer

from edgefl.analysis.runs.choices import Json, Quiet
from edgefl.version import __version__

DISTRIBUTION = "edgefl-cosim"
LEAST_FREE = 1e9  # disk space, in bytes, that a study may need
EXTRAS = re.compile(r"extra == [\"'](\w+)[\"']")
OPTIONAL = ("flower", "ray", "parquet", "huggingface", "mlflow", "wandb", "gym", "maps", "kernels")


class _Finding(NamedTuple):
    """A line of `edgefl doctor`'s report; `fault` is true if edgefl cannot work because of it."""

    about: str
    said: str
    remedy: str = ""
    fault: bool = False


def doctor(json: Json = False, quiet: Quiet = False) -> None:
    """Check whether edgefl can work here: packages, processor, GPU, memory, data sets, folders.

    If something is wrong, the report ends with the remedies. The exit code is 0 if edgefl can work, otherwise 1.

    Examples:

        edgefl doctor
    """
    from edgefl.commands.shared import console

    findings = list(_examine())
    todo = [finding for finding in findings if finding.remedy]
    faulty = any(finding.fault for finding in findings)
    answer = "edgefl cannot work here" if faulty else "edgefl is ready here"
    if json or quiet:
        notes = [f"{finding.about}: {finding.remedy}" for finding in todo]
        if json:
            from edgefl.analysis.page.machine import document

            table = [finding._asdict() for finding in findings]
            print(document("doctor", answers=[answer], notes=notes, table=table))
        else:
            print(*[answer, *notes], sep="\n")
        raise typer.Exit(1 if faulty else 0)
    width = max(len(finding.about) for finding in findings)
    for about, said, remedy, fault in findings:
        mark = "✗" if fault else "!" if remedy else "✓"
        console.print(f"{mark} {about:{width}}  {said}", soft_wrap=True)
    if todo:
        console.print("\nWhat to do:")
    for finding in todo:
        console.print(f"  {finding.about}: {finding.remedy}", soft_wrap=True)
    if faulty:
        raise typer.Exit(1)
    console.print(f"\n{answer}{', with the limits above' if todo else ''}. Try: edgefl run quickstart")


def _examine() -> Iterator[_Finding]:
    """Yield the findings of `edgefl doctor`, package by package and folder by folder."""
    yield _Finding(
        "edgefl",
        f"{__version__} in {Path(__file__).parents[1]}; Python {platform.python_version()} on"
        f" {platform.system()} {platform.machine()}",
    )
    yield from _packages()
    if _metadata_of("torch") is not None:
        yield from _processor()
        yield _gpu()
    yield _memory()
    yield from _data()
    yield from _folders()


def _metadata_of(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _packages() -> Iterator[_Finding]:
    from packaging.requirements import Requirement

    wanted = [Requirement(text) for text in metadata.requires(DISTRIBUTION) or ()]
    needed = [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]
    faults = [
        one for one in needed if not one.specifier.contains(_metadata_of(one.name) or "0", prereleases=True)
    ]
    shown = ", ".join(
        f"{name} {_metadata_of(name) or 'missing'}" for name in ("torch", "numpy", "scipy", "simpy")
    )
    yield _Finding(
        "packages",
        shown,
        f"pip install {' '.join(repr(str(one)) for one in faults)}" if faults else "",
        bool(faults),
    )
    of_extras: dict[str, list[str]] = {}
    for one in wanted:
        if one.marker is not None and (extra := EXTRAS.search(str(one.marker))):
            of_extras.setdefault(extra[1], []).append(one.name)
    there = [name for name in OPTIONAL if all(map(_metadata_of, of_extras.get(name, [""])))]
    others = [name for name in OPTIONAL if name not in there]
    hint = f"; not installed: {', '.join(others)} (pip install '{DISTRIBUTION}[NAME]')" if others else ""
    yield _Finding("extras", f"{', '.join(there) or 'none'}{hint}")


def _processor() -> Iterator[_Finding]:
    import torch

    from edgefl.analysis.page.formatting import count_of
    from edgefl.learners.building import available_cores
    from edgefl.learning.local.processor import has_bf16

    threads = os.environ.get("OMP_NUM_THREADS")
    limit = f", {threads} by OMP_NUM_THREADS" if threads else ""
    bf16 = {True: "bfloat16 in hardware", False: "no bfloat16", None: "bfloat16 unknown"}[has_bf16()]
    yield _Finding(
        "processor",
        f"{count_of(available_cores(), 'core')} for this process,"
        f" {count_of(torch.get_num_threads(), 'thread')} of PyTorch{limit};"
        f" {torch.backends.cpu.get_cpu_capability()}, {bf16}",
    )


def _gpu() -> _Finding:
    import torch

    from edgefl.learners.building import may_have_gpu

    if torch.cuda.is_available():
        of = torch.cuda.get_device_properties(0)
        return _Finding("GPU", f"{of.name}, {of.total_memory / 1e9:.0f} GB; models are trained on it")
    if sys.platform == "linux" and may_have_gpu():
        built = f"CUDA {torch.version.cuda}" if torch.version.cuda else "no CUDA"
        return _Finding(
            "GPU",
            f"this PyTorch ({built}) cannot use the GPU; models are trained on the processor",
            "install the PyTorch build for your driver: https://pytorch.org/get-started/locally",
        )
    return _Finding("GPU", "none; models are trained on the processor")


def _memory() -> _Finding:
    from edgefl.learning.memory import available_bytes

    free = available_bytes() / 1e9
    little = "close other programs, or use --jobs 1" if free < 1 else ""
    return _Finding("memory", f"{free:.1f} GB free; a small run takes 0.4 GB", little)


def _data() -> Iterator[_Finding]:
    """List the data sets on this machine, and those that would have to be downloaded."""
    from edgefl.config import registry
    from edgefl.config.component import parameters_of
    from edgefl.errors import EdgeflError
    from edgefl.learning.datasets import Dataset
    from edgefl.learning.datasets._files import FileDataset
    from edgefl.learning.user_cache import user_cache, without_tilde

    here: list[str] = []
    offered: list[str] = []
    apart: list[str] = []
    for name in registry.names("datasets"):
        kind = registry.get("datasets", name)
        if any(field.is_required() for field in parameters_of(kind).model_fields.values()):
            continue  # the user's own files are known only from a scenario
        dataset = kind()
        assert isinstance(dataset, Dataset)
        try:
            dataset.check()
            here.append(name)
        except EdgeflError:
            files = dataset.files() if isinstance(dataset, FileDataset) else None
            online = files is not None and (files.url or (files.archive and files.archive.url))
            (offered if online else apart).append(name)
    yield _Finding("data here", ", ".join(here))
    offline = os.environ.get("EDGEFL_OFFLINE", "0") not in ("", "0")
    if offered:
        cache = user_cache()
        if offline:
            when = "not downloaded, because EDGEFL_OFFLINE forbids it"
        elif cache is None or _in_the_way(cache):
            when = "not downloaded, because there is no folder for them (see the line cache)"
        else:
            when = f"downloaded into {cache} when used"
        yield _Finding("data online", f"{', '.join(offered)}: {when}")
    if apart:
        yield _Finding("data elsewhere", f"{', '.join(apart)}: a run that needs one explains how to get it")
    data = os.environ.get("EDGEFL_DATA")
    if data and not without_tilde(Path(data)).is_dir():
        yield _Finding("EDGEFL_DATA", f"{data} is not a folder", "create it, or unset EDGEFL_DATA")


def _folders() -> Iterator[_Finding]:
    from edgefl.learning.user_cache import user_cache

    elsewhere = "change to a folder that you own"
    own_cache = "set XDG_CACHE_HOME to a folder that you own"
    for what, folder, needed, remedy in (
        ("runs", Path.cwd(), True, elsewhere),
        ("scratch", Path(tempfile.gettempdir()), True, "set TMPDIR to a folder that you own"),
        ("cache", user_cache(), False, own_cache),
    ):
        if folder is None:
            yield _Finding(what, "no home folder", remedy, needed)
            continue
        there = _nearest(folder)
        if wrong := _in_the_way(folder):
            also = f", or chmod u+w {there}" if there.is_dir() else ""
            yield _Finding(what, wrong, f"{remedy}{also}", needed)
            continue
        free = shutil.disk_usage(there).free
        little = (
            "free some space: a study takes a few megabytes, and snapshots of large models take more"
            if free < LEAST_FREE
            else ""
        )
        yield _Finding(what, f"{folder} is writable, {free / 1e9:,.1f} GB free", little)


def _nearest(folder: Path) -> Path:
    """Return a folder, or its nearest existing parent."""
    return next(each for each in (folder, *folder.parents) if os.path.lexists(each))


def _in_the_way(folder: Path) -> str:
    """Return why a folder, which may not exist yet, is not writable; '' if it is."""
    there = _nearest(folder)
    if not there.is_dir():
        return f"{there} is not a folder"
    return "" if os.access(there, os.W_OK | os.X_OK) else f"{there} cannot be written"

"""Images made from this machine's own files, without any registry: one with Python, one with PyTorch too."""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PYTHON = "localhost/torchyard-test-python:1"
TORCH = "localhost/torchyard-test-torch:1"
_LEFT_OUT = ("test", "idlelib", "ensurepip", "__pycache__", "site-packages", "dist-packages", "tkinter", "config-*")
_PROGRAMS = ("sh", "bash", "cat", "cp", "ls", "sleep", "df", "mkdir")


def buildah(*words: str) -> str:
    """Run buildah; its output."""
    return subprocess.run(["buildah", *words], check=True, capture_output=True, text=True).stdout.strip()


def has(image: str) -> bool:
    """Is it in the local storage?"""
    return subprocess.run(["buildah", "inspect", image], capture_output=True, check=False).returncode == 0


def make_python() -> str:
    """An image with this interpreter and a shell; made once."""
    if not has(PYTHON):
        container = buildah("from", "scratch")
        root = Path(buildah("mount", container))
        _copy_python(root)
        buildah("umount", container)
        buildah("config", "--env", "PATH=/usr/local/bin:/bin", "--env", "FROM_IMAGE=yes", container)
        buildah("commit", "--quiet", "--rm", container, PYTHON)
    return PYTHON


def make_torch() -> str:
    """The same with the packages of this environment; made once."""
    make_python()
    if not has(TORCH):
        container = buildah("from", "--pull-never", PYTHON)
        root = Path(buildah("mount", container))
        packages = Path(sysconfig.get_paths()["purelib"])
        library = root / "usr/local/lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        wanted = ("torch*", "numpy*", "sklearn*", "scikit_learn*", "scipy*", "joblib*", "threadpoolctl*", "typing_ext*")
        wanted += ("sympy*", "mpmath*", "networkx*", "jinja2*", "markupsafe*", "filelock*", "fsspec*", "setuptools*")
        wanted += ("narwhals*", "cloudpickle*", "_distutils_hack*")
        for pattern in wanted:
            for path in packages.glob(pattern):
                if not path.name.startswith("torchyard"):
                    target = library / path.name
                    shutil.copytree(path, target) if path.is_dir() else shutil.copy2(path, target)
        _copy_libraries(root, [*library.rglob("*.so"), *library.rglob("*.so.*")])
        (root / "usr/local/bin/torchrun").write_text(
            "#!/usr/local/bin/python3\nimport sys\nfrom torch.distributed.run import main\nsys.exit(main())\n"
        )
        (root / "usr/local/bin/torchrun").chmod(0o755)
        buildah("umount", container)
        buildah("commit", "--quiet", "--rm", container, TORCH)
    return TORCH


def _copy_python(root: Path) -> None:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for folder in ("usr/local/bin", "usr/local/lib", "bin", "tmp", "etc"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    program = root / "usr/local/bin" / version
    shutil.copy2(Path(sys.executable).resolve(), program)
    (root / "usr/local/bin/python3").symlink_to(version)
    (root / "usr/local/bin/python").symlink_to(version)
    library = Path(sysconfig.get_paths()["stdlib"])
    target = root / "usr/local/lib" / version
    shutil.copytree(library, target, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=False)
    (target / "site-packages").mkdir(exist_ok=True)
    programs = [Path(found) for name in _PROGRAMS if (found := shutil.which(name))]
    for path in programs:
        shutil.copy2(path.resolve(), root / "bin" / path.name)
    _copy_libraries(root, [program, *programs, *target.glob("lib-dynload/*.so")])
    (root / "etc/passwd").write_text("root:x:0:0:root:/:/bin/sh\n")


def _copy_libraries(root: Path, files: list[Path]) -> None:
    """What these programs and libraries are linked with, as far as it is not in the image."""
    said = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout
    words = {word for line in said.splitlines() for word in line.split() if word.startswith("/") and ":" not in word}
    for library in sorted(words):
        if not library.startswith(str(root)) and not (root / library.lstrip("/")).exists():
            place = root / library.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(Path(library).resolve(), place)

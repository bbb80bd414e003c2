"""What is in a folder of one-file things (rules, signatures, ...): its modules, and those that other packages bring.

Knows nothing of what the modules hold.
"""

import functools
import importlib
import importlib.metadata
import pkgutil
from types import ModuleType


@functools.cache
def modules(package_name: str) -> tuple[str, ...]:
    """Dotted names of the package's modules in alphabetical order, then those of "torchyard.<folder>" entry points."""
    package = importlib.import_module(package_name)
    own = sorted(found.name for found in pkgutil.iter_modules(package.__path__) if not found.name.startswith("_"))
    group = f"torchyard.{package_name.rpartition('.')[2]}"
    brought = sorted(point.value for point in importlib.metadata.entry_points(group=group))
    return tuple(dict.fromkeys([*(f"{package_name}.{name}" for name in own), *brought]))


@functools.cache
def load(package_name: str) -> tuple[ModuleType, ...]:
    """The modules themselves, imported on first use."""
    return tuple(importlib.import_module(name) for name in modules(package_name))

"""What a container is given: shared memory, an image's own command and user, and sentences where it cannot be."""

import os

import pytest

from tests.engines.images import make_python
from tests.engines.places import LocalPlace
from torchyard.domain.spec import Isolation

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif("TORCHYARD_TEST_CONTAINER" not in os.environ, reason="TORCHYARD_TEST_CONTAINER is not set"),
]
CONTAINER = {"isolation": Isolation.CONTAINER}
SHM = ("python3", "-c", "import os; fs = os.statvfs('/dev/shm'); print(fs.f_frsize * fs.f_blocks)")


async def test_shared_memory(here: LocalPlace) -> None:
    machine = os.statvfs("/dev/shm")
    for size, there in ((64 * 2**20, 64 * 2**20), (None, machine.f_frsize * machine.f_blocks)):
        made = here.run(*SHM, image=make_python(), shm=size, **CONTAINER)
        assert await here.output(made) == [str(there)]

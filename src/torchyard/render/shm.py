"""How much shared memory a replica gets, by the same rules on every engine, and the sentence that says so."""

from torchyard.domain.quantities import parse_size, show_size
from torchyard.domain.spec import Isolation, ReplicaSpec

POD_DEFAULT = 64 * 1024**2
DEV_SHM = "/dev/shm"


def shared_memory(spec: ReplicaSpec, isolation: Isolation, node_share: int | None = None) -> tuple[int | None, str]:
    """Bytes of /dev/shm (None: the machine's own) and where the number comes from.

    `node_share` is the part of the node's memory that falls to the replica.
    """
    if isolation is Isolation.PROCESS:
        return None, "shared memory: the machine's own /dev/shm (isolation process)"
    volume = next((v for v in spec.storage.empty_dir_volume if v.path.rstrip("/") == DEV_SHM), None)
    limit = spec.compute.cpu_memory_limit
    memory = parse_size(limit) if limit else node_share
    if volume is not None:
        if volume.size_limit:
            return _said(parse_size(volume.size_limit), "the emptyDirVolume at /dev/shm")
        return _said(memory, "the emptyDirVolume at /dev/shm, which has no sizeLimit of its own")
    if spec.compute.large_shm_request:
        quarter = max(memory // 4, POD_DEFAULT) if memory else None
        return _said(quarter, "largeShmRequest: a quarter of the memory")
    return _said(POD_DEFAULT, "a pod's default; compute.largeShmRequest gives more")


def _said(size: int | None, source: str) -> tuple[int | None, str]:
    if not size:
        return None, f"shared memory: the machine's own /dev/shm ({source}, and there is no memory limit)"
    return size, f"shared memory: {show_size(size)} ({source})"

"""The compound values of flags, `claimname=C,path=/P`: which key fills which field. A table; asks nothing."""

from typing import Any

from torchyard.cli import readers
from torchyard.cli.readers import Part, compound, one_of

EXISTING_PVC = compound(
    {"claimname": "claimName", "path": "path", "name": "name", "ro": Part("readOnly", bare=True)}, existingPvc=True
)
NEW_PVC = compound(
    {
        "claimname": "claimName",
        "path": "path",
        "size": Part("claimInfo.size", readers.size),
        "storageclass": "claimInfo.storageClass",
        "volumemode": "claimInfo.volumeMode",
        "accessmode-rwo": Part("claimInfo.accessModes.readWriteOnce", bare=True),
        "accessmode-rom": Part("claimInfo.accessModes.readOnlyMany", bare=True),
        "accessmode-rwm": Part("claimInfo.accessModes.readWriteMany", bare=True),
        "ro": Part("readOnly", bare=True),
        "ephemeral": Part("ephemeral", bare=True),
    }
)
NFS = compound(
    {
        "name": "name",
        "server": "server",
        "path": "path",
        "mountpath": "mountPath",
        "readwrite": Part("readOnly", bare=False),
    }
)
HOST_PATH = compound(
    {
        "name": "name",
        "path": "path",
        "mount": "mountPath",
        "mount-propagation": Part("mountPropagation", one_of("None", "HostToContainer")),
        "readwrite": Part("readOnly", bare=False),
    }
)
GIT = compound(
    {
        "name": "name",
        "repository": "repository",
        "path": "path",
        "branch": "branch",
        "rev": "revision",
        "secret": "secretRef.name",
    }
)
S3 = compound({"name": "name", "bucket": "bucket", "path": "path", "url": "url", "accesskey": "accessKeySecret"})
CONFIG_MAP = compound({"name": "configMap", "path": "mountPath", "subpath": "subPath", "default-mode": "defaultMode"})
SECRET = compound({"name": "secret", "path": "mountPath", "default-mode": "defaultMode"})
EMPTY_DIR = compound(
    {
        "name": "name",
        "path": "path",
        "medium": Part("medium", one_of("Memory", "Disk")),
        "size-limit": Part("sizeLimit", readers.size),
    }
)
TOLERATION = compound(
    {
        "name": "name",
        "key": "key",
        "value": "value",
        "operator": Part("operator", one_of("Equal", "Exists")),
        "effect": Part("effect", one_of("NoSchedule", "NoExecute", "PreferNoSchedule", "Any")),
        "seconds": Part("seconds", readers.whole),
    }
)
PORT = compound(
    {
        "name": "name",
        "container": Part("container", readers.whole),
        "external": Part("external", readers.whole),
        "service-type": Part("serviceType", one_of("LoadBalancer", "NodePort", "ClusterIP")),
    }
)
URL = compound({"name": "name", "url": "url", "container": Part("container", readers.whole)})
PULL_SECRET = compound({"name": Part("name", "dockerreg-{}".format), "type": "type"}, userCredential=True)


def pull_secret(text: str) -> dict[str, Any]:
    """A user's own credential for an image's registry."""
    found: dict[str, Any] = PULL_SECRET(text)
    kind = found.pop("type", "dockerRegistry")
    if kind != "dockerRegistry" or "name" not in found:
        raise ValueError("write it as type=dockerRegistry,name=NAME")
    return found

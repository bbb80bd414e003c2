"""What a replica mounts: the data sources of the Run:ai v1 spec."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from torchyard.domain.model import Model, Name, some_size


class AccessModes(Model):
    """Who may mount a claim at once."""

    read_write_once: bool | None = None
    read_only_many: bool | None = None
    read_write_many: bool | None = None


class AttributeValue(Model):
    """A key and a value."""

    key: str
    value: str | None = None


class ClaimInfo(Model):
    """What a new claim is made of."""

    size: str | None = None
    storage_class: str | None = None
    access_modes: AccessModes | None = None
    volume_mode: Literal["Filesystem", "Block"] | None = None
    added_attr_values: tuple[AttributeValue, ...] | None = None

    _sizes = field_validator("size")(some_size)


class Pvc(Model):
    """A claim and where it is mounted."""

    path: Annotated[str, Field(pattern=r"^/", max_length=1024)]
    name: str | None = None
    existing_pvc: bool = False
    claim_name: Name | None = None
    read_only: bool = False
    ephemeral: bool = False
    claim_info: ClaimInfo | None = None
    data_sharing: bool | None = None
    exclude: bool | None = None


class Nfs(Model):
    """A folder of an NFS server."""

    name: str | None = None
    server: str
    path: str
    mount_path: str
    read_only: bool = True


class GitSecret(Model):
    """How git proves who it is."""

    name: str
    authentication_method: Literal["password", "ssh-key"] | None = None


class Git(Model):
    """A repository checked out into the replica."""

    name: str | None = None
    repository: str
    branch: str | None = None
    revision: str | None = None
    path: str
    secret_ref: GitSecret | None = None


class S3(Model):
    """A bucket."""

    name: str | None = None
    bucket: str
    path: str
    url: str | None = None
    access_key_secret: str | None = None


class HostPath(Model):
    """A folder of the node."""

    name: str | None = None
    path: str
    mount_path: str
    read_only: bool = True
    mount_propagation: Literal["None", "HostToContainer"] | None = None


class ConfigMapVolume(Model):
    """A config map as files."""

    name: str | None = None
    config_map: str
    mount_path: str
    sub_path: str | None = None
    default_mode: str | None = None


class SecretVolume(Model):
    """A secret as files."""

    name: str | None = None
    secret: str
    mount_path: str
    default_mode: str | None = None


class DataVolume(Model):
    """A data volume by its id."""

    id: str
    mount_path: str


class EmptyDirVolume(Model):
    """Scratch space that lives as long as the replica; medium Memory at /dev/shm is shared memory."""

    name: str | None = None
    path: Annotated[str, Field(pattern=r"^/")]
    medium: Literal["", "Memory", "Disk"] | None = None
    size_limit: str | None = None

    _sizes = field_validator("size_limit")(some_size)


class Storage(Model):
    """Everything a replica mounts."""

    pvc: tuple[Pvc, ...] = ()
    nfs: tuple[Nfs, ...] = ()
    git: tuple[Git, ...] = ()
    s3: tuple[S3, ...] = ()
    host_path: tuple[HostPath, ...] = ()
    config_map_volume: tuple[ConfigMapVolume, ...] = ()
    secret_volume: tuple[SecretVolume, ...] = ()
    data_volume: tuple[DataVolume, ...] = ()
    empty_dir_volume: tuple[EmptyDirVolume, ...] = ()

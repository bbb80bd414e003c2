"""What one command works with: the user's settings, the connection, and names turned into ids."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar

import click

from torchyard.client import Config, Server, connect, load_config, org, workloads

Row = dict[str, Any]
Function = TypeVar("Function", bound=Callable[..., Any])


class Session:
    """The owner of a command's connection. Nothing is asked before it is needed."""

    def __init__(self, project: str | None = None, cluster: str | None = None) -> None:
        self.config: Config = load_config()
        self.project = project or self.config.project
        self.cluster = cluster or self.config.cluster

    @cached_property
    def server(self) -> Server:
        """The connection, opened at first use; it starts this machine's server where none is configured."""
        return connect(config=self.config)

    def another(self) -> Server:
        """A connection for another thread."""
        return connect(config=self.config)

    @cached_property
    def project_id(self) -> str:
        """Id of the project in use."""
        return org.project_id(self.server, self.project)

    @cached_property
    def cluster_id(self) -> str:
        """Id of the cluster in use."""
        return org.cluster_id(self.server, self.cluster)

    def workload(self, name: str) -> Row:
        """The row of a workload by its name."""
        return workloads.find(self.server, name, self.project)


def project_option(function: Function) -> Function:
    """`-p PROJECT`."""
    return click.option("-p", "--project", metavar="PROJECT", help="Project, else that of `torchyard project set`.")(
        function
    )

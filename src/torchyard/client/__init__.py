"""The Python client: `connect()`, then one module a noun. Plain dicts in the API's words; knows no terminal."""

from torchyard.client.config import Config, load_config
from torchyard.client.http import Address, Server
from torchyard.client.local import connect

__all__ = ["Address", "Config", "Server", "connect", "load_config"]

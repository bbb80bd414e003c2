"""A server whose only cluster is a fake engine with many devices; its workloads run until they are stopped."""

import os
import sys

from torchyard.app import serve
from torchyard.engines.fake import FakeEngine, FakeWorld
from torchyard.settings import Settings

serve(Settings.from_environment(os.environ), {"local": FakeEngine(FakeWorld(devices=int(sys.argv[1])))})

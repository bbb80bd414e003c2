"""A server whose only cluster is a fake engine with many devices; its workloads run until they are stopped."""

import sys
from dataclasses import replace

from torchyard.engines.fake import FakeEngine, FakeWorld

from torchyard.app import serve
from torchyard.settings import Settings

world = FakeWorld(devices=int(sys.argv[1]), auto=True)
serve(replace(Settings.from_environment()), engines={"local": FakeEngine(world)})

"""For all tests: with every service there (TORCHYARD_TEST_ALL) nothing may be skipped; properties have no clock."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
# A run in the background of a script inherits an ignored SIGINT; what the tests start must not.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if "TORCHYARD_TEST_ALL" in os.environ and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED

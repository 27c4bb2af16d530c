"""Tests that start real processes get a second try, aloud: one bad moment of a busy machine, and no habit of them.

What failed first is told in full at the end, and more than a few second tries fail the run. There is none where races
are what a test looks for (chaos, the fault table), and none where only this process takes part.
"""

import pytest

FOLDERS = ("tests/browser/", "tests/engine/", "tests/system/", "tests/workers/")
NEVER = ("tests/system/test_faults.py",)
MOST = 3


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(FOLDERS) and not item.nodeid.startswith(NEVER):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"failed first, tried again: {report.nodeid}")
        terminalreporter.line(report.longreprtext)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    num_tries = len(terminal.stats.get("rerun", [])) if terminal else 0
    if num_tries > MOST and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED

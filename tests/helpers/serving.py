"""`prescore serve`, with a Redis that lets tests in: ours lets in nobody but the service."""

import runpy

from service.operate import own_redis

own_redis.RULES += "user tests on nopass ~* &* +@all\n"
runpy.run_module("service", run_name="__main__")

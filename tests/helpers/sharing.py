"""Who runs what with `-n 4`.

Trials with fleets are run one after the other by one process, which begins with them and waits more
than it computes: two fleets at once are late on two cores. What asks Java for METEOR is run by
another one, since its table takes ten seconds of a core to read. Small captioners of transformers
are made, and the library is read, by one. Other files are run by whoever is free; what a file
shares is made once. (xdist's own groups, `--dist loadgroup`, do nothing under pytest 9.2: its issue
1386.)
"""

from typing import Any

FLEETS, JAVA, TRANSFORMERS = "fleets", "java", "transformers"
GROUPS = {
    "tests/trials/test_client.py": JAVA,  # its service is in the test's process, and asks METEOR
    "tests/test_documents.py": JAVA,  # as above
    "tests/trials/": FLEETS,
    "tests/parity/": JAVA,
    "tests/workers/analysis/test_estimation.py": JAVA,
    "tests/workers/metrics/": JAVA,
    "tests/workers/metrics/test_": JAVA,
    "tests/workers/metrics/java/": JAVA,
    "tests/workers/metrics/learned/": JAVA,
    "tests/workers/inference/huggingface/": TRANSFORMERS,
}


def group_of(nodeid: str) -> str:
    """What is run together with this test, by one process."""
    file = nodeid.partition("::")[0]
    return next((group for start, group in GROUPS.items() if file.startswith(start)), file)


def turn_of(nodeid: str) -> int:
    """The longest first."""
    return {FLEETS: 0, JAVA: 1, TRANSFORMERS: 2}.get(group_of(nodeid), 3)


def scheduler(config: Any, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False  # it would begin with those of the most tests
    return Groups(config, log)

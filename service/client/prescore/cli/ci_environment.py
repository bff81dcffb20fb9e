"""The branch, commit and job of the CI that this command runs in, from its environment."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class CiVariables:
    """The names of a CI system's variables; the first variable of `branch` that is set counts."""

    commit: str
    branch: tuple[str, ...]
    run: str  # equal in every job of a run, and in a repeated job


# A pull request is labelled by its number and not by its branch: a branch in somebody's fork may
# be called `main` too, and its scores would be taken for the baseline's.
SYSTEMS = {
    "github": CiVariables("GITHUB_SHA", ("GITHUB_REF_NAME",), "GITHUB_RUN_ID"),
    "gitlab": CiVariables(
        "CI_COMMIT_SHA",
        ("CI_COMMIT_BRANCH", "CI_MERGE_REQUEST_REF_PATH", "CI_COMMIT_TAG"),
        "CI_PIPELINE_ID",
    ),
    "jenkins": CiVariables("GIT_COMMIT", ("BRANCH_NAME",), "BUILD_TAG"),
}
FOREIGN_CODE_ON_OUR_BRANCH = "pull_request_target"  # GitHub's event: the branch is not the code's


@dataclass(frozen=True)
class CiJob:
    branch: str = ""
    commit: str = ""
    run: str = ""

    @property
    def labels(self) -> dict[str, str]:
        named = {"branch": self.branch, "commit": self.commit}
        return {name: value for name, value in named.items() if value}


def find_ci_job(environment: Mapping[str, str]) -> CiJob:
    """Find the job by the first CI system whose commit variable is set; empty outside a CI."""
    for system in SYSTEMS.values():
        if commit := environment.get(system.commit):
            return CiJob(
                branch=_find_branch(environment, system),
                commit=commit,
                run=environment.get(system.run, ""),
            )
    return CiJob()


def _find_branch(environment: Mapping[str, str], system: CiVariables) -> str:
    if environment.get("GITHUB_EVENT_NAME") == FOREIGN_CODE_ON_OUR_BRANCH:
        return ""
    return next(filter(None, map(environment.get, system.branch)), "") or ""

"""What tests do between the steps of a commit."""

from collections.abc import Callable
from typing import Any

import pytest

from lakelib.catalog import commits
from lakelib.catalog.connect import Catalog
from lakelib.model.commit import Staged
from lakelib.model.table import Proposal

Hook = Callable[[Catalog, Proposal], Proposal | None]


def before_staging(patch: pytest.MonkeyPatch, hook: Hook) -> None:
    """The hook comes once files are written, before the commit is staged; it may give another proposal to stage."""
    stage, commit = commits.stage, commits.commit
    patch.setattr(commits, "stage", lambda catalog, proposal: stage(catalog, hook(catalog, proposal) or proposal))
    patch.setattr(
        commits,
        "commit",
        lambda catalog, proposal, **options: commit(catalog, hook(catalog, proposal) or proposal, **options),
    )


def after_staging(patch: pytest.MonkeyPatch, hook: Hook) -> None:
    """The hook comes between staging and publishing, which are two steps then."""
    stage, publish = commits.stage, commits.publish

    def stage_and_go_on(catalog: Catalog, proposal: Proposal) -> Any:
        outcome = stage(catalog, proposal)
        if isinstance(outcome, Staged):
            hook(catalog, proposal)
        return outcome

    def commit(catalog: Catalog, proposal: Proposal, **options: Any) -> Any:
        outcome = stage_and_go_on(catalog, proposal)
        return publish(catalog, [proposal.commit_id], **options) if isinstance(outcome, Staged) else outcome

    patch.setattr(commits, "stage", stage_and_go_on)
    patch.setattr(commits, "commit", commit)

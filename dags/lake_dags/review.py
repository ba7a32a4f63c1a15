"""A person decides about a commit that its gate rejected: the question, the answer, and what the answer leads to."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Context, Param
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from lake_dags import actions
from lake_dags.operator import report_address
from lakelib.errors import RetryableError

PUBLISH, DISCARD = "publish", "discard"
_LONGEST_ANSWER = 2000
_STAGED = "(ti.xcom_pull(task_ids='stage_and_judge') or {})"


def review_task(table: str, timeout: timedelta) -> "ReviewOperator":
    return ReviewOperator(
        task_id="review",
        subject=f"The gate of {table} rejected partition {{{{ {_STAGED}.get('partition') }}}}",
        body=_question(),
        options=[PUBLISH, DISCARD],
        params={
            "reason": Param(
                None,
                type=["null", "string"],
                maxLength=_LONGEST_ANSWER,
                title="Reason",
                description="Why. Publishing needs a reason, discarding none.",
            )
        },
        response_timeout=timeout,
    )


def _question() -> str:
    """In Markdown, a text in Jinja: what failed, and what the answers mean. What the data holds is in a block of code:
    nothing in it is a link or a picture."""
    report = report_address("{{ dag.dag_id }}", "{{ run_id | urlencode }}", "stage_and_judge")
    return f"""\
Commit `{{{{ {_STAGED}['commit'] }}}}` is in quarantine: nobody sees its rows. What failed:

{{% for line in {_STAGED}.get('failures') or ['see the report'] %}}    {{{{ line }}}}
{{% endfor %}}
[The gate's report]({report}), with the rows and how to see them

- **{PUBLISH}**: its rows become visible all the same. Your name and reason are kept with the commit.
- **{DISCARD}**: it stays rejected, no reason needed, and the run fails. Correct the source and clear the task
  stage_and_judge."""


class ReviewOperator(HITLOperator):
    """Asks whether a rejected commit is to be published all the same. It is skipped where there is nothing to ask: the
    gate let the commit through, or somebody has published it meanwhile.

    Returns the answer and the commit that it is about.
    """

    def execute(self, context: Context) -> Any:
        staged = staged_of(context)
        if not is_rejected(staged):
            raise AirflowSkipException(f"The gate says {staged['outcome']}: nobody has to decide.")
        match _known_state(staged["commit"]):
            case "published":
                raise AirflowSkipException(f"Commit {staged['commit']} is published already.")
            case "expired":
                raise AirflowFailException(
                    f"Commit {staged['commit']} has expired: its rows are given up. Clear the task stage_and_judge, and"
                    " they are made anew."
                )
        return super().execute(context)

    def process_trigger_event_error(self, event: dict[str, Any]) -> None:
        """A task that was killed is tried again; to be asked again is up to people."""
        if event["error_type"] == "timeout":
            raise AirflowFailException("Nobody has answered in time. Clear the task review to be asked again.")
        super().process_trigger_event_error(event)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:
        answer = {**super().execute_complete(context, event), "commit": staged_of(context)["commit"]}
        if chosen_in(answer) == PUBLISH and not reason_of(answer):
            raise AirflowFailException(
                "Publishing a rejected commit needs a reason. Clear the task review to be asked again."
            )
        return answer


def _known_state(commit: str) -> str | None:
    """None where the catalog cannot be asked: then a person is."""
    with suppress(RetryableError):
        return actions.state_of(commit)
    return None


def staged_of(context: Context) -> dict[str, Any]:
    """What stage_and_judge has told; it has not if somebody set its state by hand."""
    staged: dict[str, Any] | None = context["ti"].xcom_pull(task_ids="stage_and_judge")
    if staged is None:
        raise AirflowFailException("The task stage_and_judge has left no commit behind. Clear it, and it makes one.")
    return staged


def is_rejected(staged: Mapping[str, Any]) -> bool:
    """Whether a person has to decide. Raises ValueError for an outcome that is none."""
    match staged["outcome"]:
        case "accept" | "warn" | "empty":
            return False
        case "reject":
            return staged.get("state") != "published"
        case outcome:
            raise ValueError(f"The outcome {outcome!r} is none that this DAG knows.")


def approval_of(context: Context, staged: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answer that lets the commit through; None if nobody had to be asked. An answer about another commit of the
    run is none about this one.

    Raises AirflowFailException for a commit that a person discarded, unless it was published by other means.
    """
    answer: dict[str, Any] | None = context["ti"].xcom_pull(task_ids="review")
    if answer is None or answer.get("commit") != staged["commit"]:
        return None
    if chosen_in(answer) == PUBLISH:
        return answer
    if actions.state_of(staged["commit"]) == "published":
        return None
    by, reason = reviewer_of(answer), reason_of(answer) or "no reason given"
    actions.discard(staged["commit"], by, reason)
    raise AirflowFailException(
        f"Partition {staged['partition']} of {staged['table']} was not published: {by} discarded"
        f" commit {staged['commit']} ({reason}). Correct the source, then clear"
        " the task stage_and_judge with all that comes after it."
    )


def chosen_in(answer: Mapping[str, Any]) -> str:
    return str(answer["chosen_options"][0])


def reviewer_of(answer: Mapping[str, Any]) -> str:
    user = answer.get("responded_by_user") or {}
    return one_line(user.get("name") or user.get("id") or "somebody")


def reason_of(answer: Mapping[str, Any]) -> str:
    return one_line((answer.get("params_input") or {}).get("reason") or "")


def one_line(text: object) -> str:
    """What a person said, as logs and a program's arguments can take it: without line breaks and control characters,
    and not too long."""
    words = "".join(character if character.isprintable() else " " for character in str(text)).split()
    return " ".join(words)[:_LONGEST_ANSWER]

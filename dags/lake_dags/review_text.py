"""What the task review says: what failed, and what the answers mean. Texts in Jinja, filled in when the task runs."""

_STAGED = "(ti.xcom_pull(task_ids='stage_and_judge') or {})"


def review_body(report: str, publish: str, discard: str) -> str:
    """In Markdown; `report` is the address of the gate's report. What the data holds is in a block of code: nothing in
    it is a link or a picture."""
    return f"""\
Commit `{{{{ {_STAGED}['commit'] }}}}` is in quarantine: nobody sees its rows. What failed:

{{% for line in {_STAGED}.get('failures') or ['see the report'] %}}    {{{{ line }}}}
{{% endfor %}}
[The gate's report]({report}), with the rows and how to see them

- **{publish}**: its rows become visible all the same. Your name and reason are kept with the commit.
- **{discard}**: it stays rejected, no reason needed, and the run fails. Correct the source and clear the task
  stage_and_judge."""

"""The pages about the lake that the API server shows in Airflow's navigation (plugins/lake_pages.py).

`app` has the routes, `lakes` the lake that they ask, `rights` who may see and decide, `rendering` makes the HTML, with
what `drawing` draws and `links` leads to. Nothing of lakelib that takes long to load is loaded before a page is asked
for.
"""

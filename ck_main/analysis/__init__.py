"""Analysis of outputs: statistics, kinds of failure, comparisons, tables, plots and reports.

May import: `ck_pro`, `ck_web.page`.
Other rooms use `analyse` of `summary`, `compare` of `comparison` and `report_page` of `report`.
"""

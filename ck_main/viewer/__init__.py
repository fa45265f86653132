"""The server of the viewer: runs from output rows and journals as JSON for one web page.

It only reads runs; it writes nothing beside them. May import: all of `ck_pro`, and the rooms
`tasks`, `output` and `runner` of this package. `ck_main.view` uses `app`.

Rooms, in import order; the modules beside them may import all:

    runs     one run: outline, steps, model calls; the list of runs
    page     the web page: HTML, CSS and JavaScript
"""

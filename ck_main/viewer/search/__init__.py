"""Full-text search over the runs, and their lines of the table across restarts of the viewer.

One SQLite database per source, in the user's cache folder, is filled in the background. May
import: `ck_main.viewer.runs`. `ck_main.viewer.live` fills it, `ck_main.viewer.app` searches it.
"""

"""One leased browser: its pages, tabs, downloads, uploads and storage.

May import: `observe` and the rooms above it.
`actions`, `pool` and `operations` use `Session`.
"""

"""One leased browser: its pages, tabs, downloads, uploads and storage.

May import: `observe` and what stands above it.
`actions`, `pool` and `operations` use `Session`.
"""

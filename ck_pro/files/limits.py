"""Limits on what one call reads. They keep a hostile file from more than an error line."""

MAX_TEXT = 30_000
"""Characters of a result of `read_document`."""
MAX_MEMBERS = 20_000
"""Members of an archive, in all levels."""
MAX_UNPACKED = 1 << 30
"""Bytes that one call may unpack."""
MAX_RATIO = 300
"""Unpacked bytes per packed byte, beyond the first 10 MB."""
MAX_NESTING = 4
"""Levels of files inside files."""
MAX_HITS = 50
"""Places that `search_file` lists."""
CALL_SECONDS = 45.0
"""Time limit of one call; below the time limit of a step."""
CALL_MEMORY = 1536 << 20
"""Bytes of address space that one call may add."""

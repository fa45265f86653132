"""Limits on what one call reads. They keep a hostile file from more than an error line."""

MAX_TEXT = 30_000
"""Characters of a result of `read_document`."""
MAX_MEMBERS = 20_000
"""Members of an archive, in all levels."""
MAX_UNPACKED = 1 << 30
"""Bytes that one call may unpack, in all levels."""
MAX_RATIO = 300
"""Unpacked bytes per packed byte, beyond the first 10 MB."""
MAX_NESTING = 8
"""Levels of files inside files."""
MAX_INSIDE = 200
"""Files that the contents of an archive list, in all levels."""
INSIDE_BYTES = 64 << 20
"""Bytes that are unpacked to list the files inside files."""
INSIDE_SECONDS = 5.0
"""Seconds from which no further file inside a file is opened for its kind."""
MAX_HITS = 50
"""Places that `search_file` lists."""
MAX_RESULT = 512 << 20
"""Bytes of the result of one call, between processes."""
CALL_SECONDS = 45.0
"""Time limit of one call; below the time limit of a step."""
CALL_MEMORY = 1536 << 20
"""Bytes of address space that one call may add."""

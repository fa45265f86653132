"""The journal: the append-only event log of a run, from which its output row can be rebuilt.

`<folder>/events.jsonl` has one JSON object per line: `kind`, `sid` (session), `parent` (session),
`i` (step), `phase`, `data`, `time` (Unix seconds) and sometimes `duration` (seconds). Images are
in `<folder>/blobs/<sha256>.<ext>`; the writer renames each into place before it writes the line
that refers to it. A run stores each chat message once, by hash, in a line of kind `message`. A
model call lists its messages by hash (see `ck_pro.journal.prompts`). `read_events` restores
messages and images.

A closed journal may be compressed: `events.jsonl.zst` then replaces `events.jsonl`. All readers
accept both forms, and `Journal` decompresses it to append events.
"""

from ck_pro.journal.images import BLOBS_FOLDER, BlobReader
from ck_pro.journal.lazy import LazyList
from ck_pro.journal.masking import MASK, secrets_of_environment
from ck_pro.journal.packed import (
    COMPRESSED_FILE,
    EVENTS_FILE,
    compress_journal,
    is_journal,
    locked_folder,
    restore_journal,
)
from ck_pro.journal.reading import (
    has_ended,
    journal_folders,
    read_events,
)
from ck_pro.journal.store import Fsync, Journal

JOURNAL_FILES = (EVENTS_FILE, COMPRESSED_FILE, BLOBS_FOLDER)
"""Names of a journal's files in its folder."""

WORK_FOLDER = "work"
"""Name of the folder beside a journal where the agents' code works."""

__all__ = [
    "BLOBS_FOLDER",
    "COMPRESSED_FILE",
    "EVENTS_FILE",
    "JOURNAL_FILES",
    "MASK",
    "WORK_FOLDER",
    "BlobReader",
    "Fsync",
    "Journal",
    "LazyList",
    "compress_journal",
    "has_ended",
    "is_journal",
    "journal_folders",
    "locked_folder",
    "read_events",
    "restore_journal",
    "secrets_of_environment",
]

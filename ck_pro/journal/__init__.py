"""The journal: the append-only store of a run, from which everything else can be rebuilt.

`<folder>/events.jsonl` has one JSON object per line: `kind`, `sid` (session), `parent` (session),
`i` (step), `phase`, `data`, `time` (Unix seconds) and, where it applies, `duration` (seconds).
Images live in `<folder>/blobs/<sha256>.<ext>`, written under a temporary name and renamed before
the line that names them. A chat message is stored once per run, by hash, in a line of kind
`message`; model calls name what is new in their prompts by hash (see `ck_pro.journal.prompts`).
`read_events` puts both back.

A closed journal may be compressed: `events.jsonl.zst` is then in the place of `events.jsonl`, with
the same content. All readers take both, and `Journal` makes it plain again to write on.
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
    FORKED,
    has_ended,
    journal_folders,
    read_events,
)
from ck_pro.journal.store import Fsync, Journal

JOURNAL_FILES = (EVENTS_FILE, COMPRESSED_FILE, BLOBS_FOLDER)
"""Everything in a folder that belongs to its journal."""

__all__ = [
    "BLOBS_FOLDER",
    "COMPRESSED_FILE",
    "EVENTS_FILE",
    "FORKED",
    "JOURNAL_FILES",
    "MASK",
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

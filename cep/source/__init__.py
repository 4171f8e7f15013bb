"""Where events come from: files and pipes of all formats, behind one protocol.

`expand` finds the paths, `open_source` makes a source of each, `Source.blocks` reads it.
"""

from cep.source.base import (
    BadRecord,
    Block,
    Record,
    Reject,
    Source,
    SourceError,
    SourceOptions,
)
from cep.source.detect import FORMATS
from cep.source.external_sort import sorted_events
from cep.source.json_line import read_object
from cep.source.opening import expand, open_source

__all__ = [
    "FORMATS",
    "BadRecord",
    "Block",
    "Record",
    "Reject",
    "Source",
    "SourceError",
    "SourceOptions",
    "expand",
    "open_source",
    "read_object",
    "sorted_events",
]

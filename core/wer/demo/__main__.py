"""Takes a run folder as the recording that ``wer demo`` shows: ``python -m wer.demo runs/ID``."""

import sys
from pathlib import Path

from wer.demo import FILE, pack

file = Path(__file__).with_name(FILE)
pack(Path(sys.argv[1]), file)
print(f"{file}: {file.stat().st_size:,} bytes")

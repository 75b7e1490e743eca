"""What each kind of part must do, as checks with names: for ``wer plugin check`` and for the tests of plugins.

A check calls no model that costs anything: it scripts the models around a part, and works in real
sandboxes.
"""

from wer.conformance.checks import Finding, Settings
from wer.conformance.parts import KINDS, check_name, check_part

__all__ = ["KINDS", "Finding", "Settings", "check_name", "check_part"]

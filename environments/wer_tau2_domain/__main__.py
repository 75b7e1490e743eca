"""Prints, as JSON, what the host has to know about each domain: the package's own words and schemas."""

import json
import sys

from wer_tau2_domain.package import load

json.dump(load().describe(), sys.stdout)

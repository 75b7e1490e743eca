"""A stand-in for OpenRLHF that starts in a moment: the same command line, agent interface, files and log lines.

It learns nothing and writes letters. Variables of the environment have it misbehave.
"""

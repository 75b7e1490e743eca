"""The server inside a sandbox: loads a domain once, then forks one confined child per episode.

Standard library only and Python 3.9 upwards, because it runs on the interpreter of a
sandbox image and not on the user's.

A domain is named ``module:factory``. ``factory()`` runs once a worker and returns an object
whose class has ``exposed``, a tuple of method names. Each episode is a fork of that
object: the host calls the exposed methods with JSON keyword arguments and gets JSON
back, and nothing that an episode does is seen by another.

Rules for domains: answer a tool's own exceptions as data, for an exception that escapes
ends as a `SandboxError` and the rollout has no verdict; keep no file open and no thread
running after ``factory()``; write no file, since an episode can only read. A domain whose tools are
a program that writes files has it run beside the episode: `wer_sandbox.companion`.
"""

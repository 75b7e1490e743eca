"""The host's side of `wer_sandbox`, shared by every sandbox plugin.

A plugin brings a `machines.Launcher`, which starts one worker as a process, a
container or something else; `pool.WorkerPool` does the rest: it meets the workers at a
Unix socket, leases episodes, and replaces workers that died.
"""

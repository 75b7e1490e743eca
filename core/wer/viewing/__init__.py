"""What a run looks like: data of the store for a page, the page, a local server for it, and one file of both.

`wer view` serves it and `wer report` writes it down. The data are pure functions of the store, each answer
small however large the run; the page shows them as text and nothing else.
"""

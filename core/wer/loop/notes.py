"""What an optimizer wants to find again after an interruption, in the run's store."""

from __future__ import annotations

from attrs import frozen

from wer.store import Store


@frozen(kw_only=True)
class StoredNotes:
    """A `wer.contracts.Notes` that lasts as long as the run's folder.

    Attributes:
        optimizer: Its name: two optimizers share no notes.
    """

    store: Store
    optimizer: str

    def get(self, key: str) -> str | None:
        """See `wer.contracts.Notes`."""
        return self.store.document(self._purpose, key)

    def put(self, key: str, text: str) -> None:
        """See `wer.contracts.Notes`."""
        self.store.put_document(self._purpose, key, text)

    @property
    def _purpose(self) -> str:
        return f"notes of {self.optimizer}"

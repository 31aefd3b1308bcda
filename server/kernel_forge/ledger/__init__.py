"""The append-only record of runs: SQLite in the project's folder, its entries chained by their hashes.

Sees ``ports`` and ``domain`` only. A row is canonical JSON (:mod:`~kernel_forge.ledger.rows`), its hash covers it and
the hash before (:mod:`~kernel_forge.ledger.chain`).
"""

from kernel_forge.ledger.project import project_folder
from kernel_forge.ledger.settings import is_recording
from kernel_forge.ledger.store import SqliteLedger

__all__ = ["SqliteLedger", "is_recording", "project_folder"]

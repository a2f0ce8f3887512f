"""Every kind of file that is fuzzed. To add one, write its class and put it into ``KINDS``."""

from __future__ import annotations

from fuzz.cases import Kind
from fuzz.file_kinds import Checkpoints, SavedData, Stores
from fuzz.log_kinds import JudgmentFiles, Logs
from fuzz.model_kind import Models
from fuzz.spec_kind import Specs
from fuzz.table_kinds import Csv
from fuzz.text_kinds import Letor, Qrels, Run, Scores
from fuzz.typed_table_kinds import JsonLines, Parquet

KINDS: dict[str, type[Kind]] = {
    kind.name: kind
    for kind in (
        *(Letor, Csv, JsonLines, Parquet, Scores, Qrels, Run, JudgmentFiles, Logs),
        *(Models, Specs, Checkpoints, SavedData, Stores),
    )
}

"""What was measured already of a job that is about to be submitted."""

from dataclasses import dataclass

from jobs.contract.spec import TrainSpec
from jobs.models import Board, BoardEntry, User
from jobs.selectors.asked_work import asks_for_configuration, asks_for_work, in_steps
from jobs.selectors.leaderboard import visible_boards

_MOST_BOARDS = 200


@dataclass(frozen=True)
class Measured:
    """A configuration on a board that does what is asked for."""

    board: Board
    entry: BoardEntry
    num_runs: int  # that ended well

    @property
    def runs_query(self) -> str:
        """Its newest runs in the words of the list."""
        return f"id:{','.join(str(stored['job']) for stored in reversed(self.entry.runs))}"


def already_measured(spec: TrainSpec, user: User) -> Measured | None:
    """The newest runs of the user's teams that did this work in this configuration, whatever their seeds.

    A length in epochs counts as the steps that they come to. None where there are none, and where nobody knows how many
    steps these are.
    """
    spec = in_steps(spec)
    if spec.num_steps is None:
        return None
    alike = visible_boards(user).filter(model=spec.model, dataset=spec.dataset)[:_MOST_BOARDS]
    boards = {board.pk: board for board in alike if asks_for_work(spec, board.workload)}
    if not boards:
        return None
    entries = BoardEntry.objects.filter(board__in=boards, step_time_ms__isnull=False).defer("courses")
    for entry in entries.order_by("-last_ended_at"):
        if asks_for_configuration(spec, entry.configuration):
            return Measured(boards[entry.board_id], entry, entry.outcomes.get("succeeded", len(entry.runs)))
    return None

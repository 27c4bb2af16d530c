"""What is changed about a job while it waits: priority, queue, time limit; copies; and who may."""

import pytest

from jobs.models import AuditEntry, Job, User
from jobs.services.actions import Act, Order, perform, perform_all
from jobs.services.cancel import request_cancel
from jobs.services.change import change_priority, change_time_limit, move_job
from jobs.services.clone import clone_job
from jobs.services.errors import NotAllowed, NotPossible
from tests.jobs.factories import make_ended_job, make_job, make_queue, make_spec, make_user, make_worker, start

pytestmark = pytest.mark.django_db


@pytest.fixture
def boss(db: None) -> User:
    return make_user("boss", is_staff=True)


@pytest.fixture
def job(alice: User) -> Job:
    return make_job(alice)


def trail() -> list[tuple[str, str, str, dict[str, object]]]:
    entries = AuditEntry.objects.order_by("pk")
    return [(entry.actor_name, entry.action, entry.reason, entry.detail) for entry in entries]


def test_staff_raise_a_priority(job: Job, boss: User) -> None:
    change_priority(job, boss, 5, "deadline")
    assert Job.objects.get().priority == 5
    assert trail() == [("boss", "priority", "deadline", {"before": 0, "after": 5})]


def test_owners_lower_theirs_and_raise_it_no_further_than_the_queues_own(job: Job, alice: User) -> None:
    change_priority(job, alice, -3)
    change_priority(job, alice, 0)
    with pytest.raises(NotAllowed, match="Only staff raise a priority"):
        change_priority(job, alice, 1)
    assert Job.objects.get().priority == 0


def test_what_an_owner_was_given_they_may_lower_in_steps(alice: User) -> None:
    job = make_job(alice, priority=9)
    change_priority(job, alice, 4)
    with pytest.raises(NotAllowed):
        change_priority(job, alice, 5)


@pytest.mark.parametrize("priority", [101, -101])
def test_a_priority_has_bounds(job: Job, boss: User, priority: int) -> None:
    with pytest.raises(NotPossible, match="between -100 and 100"):
        change_priority(job, boss, priority)


def test_a_job_moves_to_another_queue_and_stays_as_old_as_it_is(job: Job, alice: User) -> None:
    other = make_queue("other")
    before = job.order_key
    move_job(job, alice, other, "shorter line")
    job.refresh_from_db()
    assert (job.queue, job.order_key) == (other, before)
    assert trail() == [("alice", "move", "shorter line", {"before": "default", "after": "other"})]


def test_a_job_does_not_move_where_no_worker_could_run_it(alice: User) -> None:
    make_worker("gpu-box", queues=["default"], num_gpus=1)
    make_worker("cpu-box", queues=["small"])
    job = make_job(alice, spec=make_spec(device="cuda"))
    with pytest.raises(NotPossible, match="No worker of the queue “small” can run job"):
        move_job(job, alice, make_queue("small"))
    with pytest.raises(NotPossible, match="waits in the queue “default” already"):
        move_job(job, alice, make_queue("default"))


def test_a_time_limit_is_changed_and_taken_away(job: Job, alice: User) -> None:
    change_time_limit(job, alice, 60)
    assert Job.objects.get().train_spec.time_limit_s == 60
    change_time_limit(job, alice, None, "needs longer")
    assert Job.objects.get().train_spec.time_limit_s is None
    assert [detail for *_who, detail in trail()] == [{"before": None, "after": 60.0}, {"before": 60.0, "after": None}]
    with pytest.raises(NotPossible, match="above zero"):
        change_time_limit(job, alice, -1)


@pytest.mark.parametrize("act", [Act.PRIORITY, Act.MOVE, Act.TIME_LIMIT, Act.FIRST, Act.LAST])
def test_what_has_started_or_ended_is_not_changed_any_more(act: Act, boss: User) -> None:
    order = Order(act, priority=3, queue=make_queue("other"), time_limit_s=5)
    started = make_job()
    start(started)
    with pytest.raises(NotPossible, match=f"Job {started.pk} has already started"):
        perform(boss, started, order)
    ended = make_ended_job(worker=make_worker("second"))
    with pytest.raises(NotPossible, match=f"Job {ended.pk} has already ended"):
        perform(boss, ended, order)
    assert trail() == []


def test_a_copy_asks_for_the_same_and_belongs_to_who_made_it(alice: User) -> None:
    original = make_ended_job(alice, spec=make_spec(seed=7))
    bob = make_user("bob", team=original.team)
    copy = clone_job(original, bob, "once more")
    assert (copy.owner, copy.team, copy.queue, copy.spec) == (bob, original.team, original.queue, original.spec)
    assert copy.state == "queued"
    assert trail() == [("bob", "clone", "once more", {"source": original.pk})]


@pytest.mark.parametrize("act", [act for act in Act if act not in (Act.CLONE, Act.FIT)])
def test_a_team_mate_may_copy_a_job_and_do_nothing_else_to_it(job: Job, act: Act) -> None:
    bob = make_user("bob", team=job.team)
    with pytest.raises(NotAllowed, match=f"Job {job.pk} is not yours"):
        perform(bob, job, Order(act, queue=make_queue("other")))
    perform(bob, job, Order(Act.CLONE))
    assert [action for _who, action, *_ in trail()] == ["clone"]


def test_each_of_many_is_done_for_itself(alice: User, stranger: User) -> None:
    waiting, ended, theirs = make_job(alice), make_ended_job(alice), make_job(stranger)
    mates = make_job(make_user("bob", team=waiting.team))
    jobs = [waiting, ended, theirs, mates, waiting]
    results = perform_all(alice, [job.pk for job in jobs], Order(Act.CANCEL, "clean up"))
    assert [(result.job_id, result.error) for result in results] == [
        (waiting.pk, ""),
        (ended.pk, f"Job {ended.pk} has already ended."),
        (theirs.pk, f"There is no job {theirs.pk}."),
        (mates.pk, f"Job {mates.pk} is not yours. Its owner or staff can do this."),
    ]
    assert [(who, action, reason) for who, action, reason, _ in trail()] == [("alice", "cancel", "clean up")]


def test_a_cancel_is_undone_by_queueing_again(alice: User, job: Job) -> None:
    request_cancel(job, alice, "oops")
    [result] = perform_all(alice, [job.pk], Order(Act.REQUEUE))
    assert result.job
    assert (result.job.state, result.job.outcome, result.job.cancel_reason) == ("queued", None, "")
    assert [action for _who, action, *_ in trail()] == ["cancel", "requeue"]


def test_several_go_to_the_front_in_the_order_in_which_they_were_named(boss: User, alice: User) -> None:
    jobs = [make_job(alice) for _ in range(4)]
    wanted = [jobs[3].pk, jobs[2].pk]
    perform_all(boss, wanted, Order(Act.FIRST))
    line = list(Job.objects.order_by("order_key").values_list("pk", flat=True))
    assert line == [*wanted, jobs[0].pk, jobs[1].pk]


def test_there_is_a_bound_to_how_many_at_once(boss: User) -> None:
    with pytest.raises(NotPossible, match="At most 500"):
        perform_all(boss, range(501), Order(Act.CANCEL))

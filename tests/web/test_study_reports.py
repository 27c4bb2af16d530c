"""A study's report: words first, shared by a link that opens nothing else, and a file that needs nothing else."""

import base64
import hashlib
import re

import pytest
from django.test import Client

from jobs.contract.plan import Axis, StudyPlan
from jobs.contract.states import Outcome
from jobs.models import AuditEntry, Queue, Study, User
from jobs.services.finish import finish_attempt
from jobs.services.studies import create_study
from tests.jobs.factories import make_spec, make_summary, make_worker, start

pytestmark = pytest.mark.django_db

BASE = make_spec(model="gpt-tiny", dataset="stdlib-text").model_dump(mode="json")
HEADLINE = (
    "bf16-mixed is 2.00 times faster (95 % interval 2.00 to 2.00, n = 3) at equal loss, and needs 25 % less memory."
)


@pytest.fixture
def study(alice: User, queue: Queue) -> Study:
    """A study that ended: half the time and three quarters of the memory at the same loss."""
    worker = make_worker()
    plan = StudyPlan(base=BASE, axes=[Axis(field="precision", values=["bf16-mixed", "fp8"])], num_repeats=3)
    made = create_study(owner=alice, team=alice.teams.get(), queue=queue, plan=plan, name="Which <b>arithmetic</b>?")
    for job in made.jobs.all():
        share = 1 if job.study_place else 2
        figures = {"steady_step_time_ms": 5.0 * share, "peak_rss_bytes": 2**27 * (2 + share), "final_eval_loss": 2.0}
        finish_attempt(start(job, worker), Outcome.SUCCEEDED, make_summary(**figures))
    return made


def share(web: Client, study: Study) -> str:
    """The address of the report's link."""
    page = web.post(f"/studies/{study.pk}/share/", follow=True).content.decode()
    found = re.search(r'id="share-link"[^>]*>http://testserver(/reports/[^<]+)<', page)
    assert found
    return found[1]


def test_the_report_says_it_in_words_first(web: Client, study: Study) -> None:
    page = web.get(f"/studies/{study.pk}/report/").content.decode()
    assert page.index(HEADLINE) < page.index("report-rows")
    assert "Which &lt;b&gt;arithmetic&lt;/b&gt;?" in page
    assert "Left out, because the rules refuse them" in page
    assert page.count("data-figure=") == 4


def test_a_link_opens_the_report_without_signing_in_until_it_is_taken_back(web: Client, study: Study) -> None:
    address, anybody = share(web, study), Client()
    assert share(web, study) == address
    answer = anybody.get(address)
    assert (answer.status_code, answer["Cache-Control"], answer["Referrer-Policy"]) == (200, "no-store", "no-referrer")
    assert HEADLINE in answer.content.decode()
    web.post(f"/studies/{study.pk}/unshare/")
    assert anybody.get(address).status_code == 404
    assert share(web, study) != address
    actions = AuditEntry.objects.filter(study=study).order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["share", "unshare", "share"]


def test_the_link_opens_nothing_else(web: Client, study: Study) -> None:
    address, anybody = share(web, study), Client()
    page = anybody.get(address).content.decode()
    links = {link for link in re.findall(r'(?:href|src|action)="([^"]+)"', page) if not link.startswith("/static/")}
    assert links == {f"{address}file/"}
    assert anybody.get(f"/studies/{study.pk}/report/").status_code == 302
    assert anybody.get("/reports/guessed/").status_code == 404


def test_only_owner_and_staff_share(web: Client, study: Study, bob: User, stranger: User) -> None:
    for person, status in ((bob, 403), (stranger, 404)):
        other = Client()
        other.force_login(person)
        assert other.post(f"/studies/{study.pk}/share/").status_code == status
    study.refresh_from_db()
    assert study.share_token is None


def test_the_file_carries_all_that_it_needs_and_may_load_nothing(web: Client, study: Study) -> None:
    answer = Client().get(f"{share(web, study)}file/")
    assert answer["Content-Disposition"] == f'attachment; filename="pitwall-which-b-arithmetic-b-{study.pk}.html"'
    page = answer.content.decode()
    assert HEADLINE in page
    assert not re.search(r"<(?:link|img|iframe)\b|<script[^>]+src", page.split("<script>", 1)[0] + page[-20_000:])
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)
    assert "default-src &#x27;none&#x27;" in policy or "default-src 'none'" in policy
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 3
    for script in scripts:
        assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() in policy


def test_the_report_of_an_ablation_shows_what_each_option_is_worth(web: Client, alice: User, queue: Queue) -> None:
    worker = make_worker()
    axes = [Axis(field="precision", values=["fp32", "bf16-mixed"]), Axis(field="num_threads", values=[None, 1])]
    plan = StudyPlan(base=BASE, axes=axes, num_repeats=2)
    made = create_study(owner=alice, team=alice.teams.get(), queue=queue, plan=plan)
    for job in made.jobs.all():
        factor = (0.5 if job.spec["precision"] == "bf16-mixed" else 1) * (0.8 if job.spec["num_threads"] else 1)
        summary = make_summary(steady_step_time_ms=10 * factor * (1 + 0.001 * job.spec["seed"]))
        finish_attempt(start(job, worker), Outcome.SUCCEEDED, summary)
    for address in ("report/", "report/file/"):
        page = web.get(f"/studies/{made.pk}/{address}").content.decode()
        assert page.index("What each option is worth") < page.index("data-figure=")
        assert "Acting together" in page
        assert page.count('<i class="waterfall__bar') >= 5, "baseline, two options, acting together, all together"


def test_a_study_without_a_result_has_a_report_that_says_so(web: Client, alice: User, queue: Queue) -> None:
    plan = StudyPlan(base=BASE, axes=[Axis(field="num_threads", values=[1])])
    made = create_study(owner=alice, team=alice.teams.get(), queue=queue, plan=plan)
    page = web.get(f"/studies/{made.pk}/report/").content.decode()
    assert "No configuration is shown to be faster than the baseline at equal loss yet." in page
    assert "data-figure=" not in page

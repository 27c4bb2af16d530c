import pytest
from django.test import Client

from jobs.models import Job, Study, User
from tests.jobs.factories import make_worker

pytestmark = pytest.mark.django_db


def fill_in(web: Client, **values: object) -> dict[str, object]:
    """The form as it is shown, with some of its fields filled in."""
    form = web.get("/studies/new/").context["form"]
    shown = {name: form[name].value() for name in form.fields}
    sent = {name: getattr(value, "pk", value) for name, value in shown.items() if value not in (None, False)}
    return sent | {"arrangement": "grid"} | values


def test_a_study_goes_from_the_form_to_its_page(web: Client, alice: User) -> None:
    answer = web.post("/studies/new/", fill_in(web, axis_1="optimizer", values_1="sgd", num_repeats=2), follow=True)
    study = Study.objects.get()
    assert answer.redirect_chain == [(f"/studies/{study.pk}/", 302)]
    assert Job.objects.filter(study=study).count() == 4
    page = answer.content.decode()
    assert "0 of 4 runs ended" in page
    assert "sgd" in page
    assert study.name in web.get("/studies/").content.decode()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"axis_1": "optimizer"}, "Say which values it takes"),
        ({"values_1": "1, 2"}, "Say what takes these values."),
        ({"axis_1": "optimizer", "values_1": "adma"}, "Must be one of"),
        ({"axis_1": "learning_rate", "values_1": "0.1, fast"}, "Must be a number."),
        ({}, "Nothing varies here"),
        ({"axis_1": "optimizer", "values_1": "sgd", "num_repeats": 99}, "less than or equal to 15"),
    ],
)
def test_what_is_wrong_stands_at_its_field_and_nothing_is_lost(
    web: Client, values: dict[str, object], sentence: str
) -> None:
    answer = web.post("/studies/new/", fill_in(web, job_name="my study") | values)
    assert answer.status_code == 422
    page = answer.content.decode()
    assert sentence in page
    assert "my study" in page
    assert not Job.objects.exists()


def test_a_form_that_is_sent_twice_makes_one_study_and_other_axes_another(web: Client) -> None:
    sent = fill_in(web, axis_1="optimizer", values_1="sgd", num_repeats=2)
    first, second = (web.post("/studies/new/", sent) for _time in range(2))
    assert first.url == second.url
    assert Job.objects.count() == 4
    assert web.post("/studies/new/", sent | {"values_1": "rmsprop"}).url != first.url


def test_the_tags_of_the_form_are_on_every_run(web: Client) -> None:
    web.post("/studies/new/", fill_in(web, axis_1="optimizer", values_1="sgd", num_repeats=2, tags="night"))
    assert Job.objects.filter(tags__name="night").count() == 4


def test_a_study_can_start_from_a_job(web: Client, job: Job) -> None:
    form = web.get(f"/studies/new/?from={job.pk}").context["form"]
    assert form["model"].value() == job.spec["model"]


def test_only_owner_and_staff_cancel_a_study(web: Client, bob: User, alice: User) -> None:
    web.post("/studies/new/", fill_in(web, axis_1="optimizer", values_1="sgd", num_repeats=2))
    study = Study.objects.get()
    other = Client()
    other.force_login(bob)
    assert other.post(f"/studies/{study.pk}/cancel/").status_code == 403
    assert 'data-open-dialog="cancel-dialog"' in web.get(f"/studies/{study.pk}/").content.decode()
    assert web.post(f"/studies/{study.pk}/cancel/", {"reason": "a typing error"}, follow=True).status_code == 200
    assert set(Job.objects.values_list("cancel_reason", flat=True)) == {"a typing error"}
    assert 'data-open-dialog="cancel-dialog"' not in web.get(f"/studies/{study.pk}/").content.decode()
    assert set(Job.objects.values_list("state", flat=True)) == {"cancelled"}


def test_the_empty_page_says_what_a_study_is_for(web: Client) -> None:
    assert "No study yet" in web.get("/studies/").content.decode()


def make_study(web: Client, **values: object) -> Study:
    web.post("/studies/new/", fill_in(web, axis_1="optimizer", values_1="sgd", num_repeats=2, **values))
    return Study.objects.latest("pk")


def test_a_study_is_paused_with_a_reason_and_resumed(web: Client, bob: User) -> None:
    study = make_study(web)
    other = Client()
    other.force_login(bob)
    assert other.post(f"/studies/{study.pk}/pause/").status_code == 403
    page = web.post(f"/studies/{study.pk}/pause/", {"reason": "too warm"}, follow=True).content.decode()
    assert "Paused by alice." in page
    assert "too warm" in page
    assert "study paused" in web.get("/fleet/queues/default/").content.decode()
    assert "Paused by alice." not in web.post(f"/studies/{study.pk}/resume/", follow=True).content.decode()


def test_a_study_is_extended_on_a_page_of_its_own(web: Client) -> None:
    study = make_study(web)
    address = f"/studies/{study.pk}/extend/"
    assert web.get(address).context["form"]["num_repeats"].value() == 2
    sent = {
        "num_repeats": 3,
        "axis_1": "optimizer",
        "values_1": "rmsprop",
        "configurations": "zero_grad_set_to_none=false",
    }
    preview = web.post(f"{address}check/", sent).content.decode()
    assert "Runs on top" in preview
    assert f'<p class="summary__big">{1 + 1 + 3 + 3}</p>' in preview
    assert "not known: nothing like it was measured yet" in preview
    assert (
        "Say which values it takes"
        in web.post(f"{address}check/", {"num_repeats": 2, "axis_1": "optimizer"}).content.decode()
    )
    refused = web.post(address, sent | {"configurations": "momentum is 0.9"})
    assert refused.status_code == 422
    assert "is not of the form name=value" in refused.content.decode()
    assert "rmsprop" in refused.content.decode()
    assert "runs are queued on top" in web.post(address, sent, follow=True).content.decode()
    num_runs = study.jobs.count()
    assert "has all of that already" in web.post(address, sent, follow=True).content.decode()
    assert study.jobs.count() == num_runs == 12
    assert "has all of that already" in web.post(f"{address}check/", sent).content.decode()


def test_an_extension_that_the_rules_refuse_is_not_said_to_be_there_already(web: Client) -> None:
    make_worker()
    study = make_study(web)
    sent = {"num_repeats": 2, "axis_1": "precision", "values_1": "fp8"}
    page = web.post(f"/studies/{study.pk}/extend/", sent, follow=True).content.decode()
    assert "the rules refuse what is new" in page
    assert study.jobs.count() == 4


def test_a_clone_is_prefilled_with_everything_that_varies(web: Client) -> None:
    lines = "optimizer=sgd, momentum=0.9\nzero_grad_set_to_none=false"
    study = make_study(web, configurations=lines, job_name="first of all", tags="night")
    form = web.get(f"/studies/new/?study={study.pk}").context["form"]
    names = ("job_name", "tags", "axis_1", "values_1", "configurations", "num_repeats", "arrangement")
    assert [form[name].value() for name in names] == ["first of all", "night", "optimizer", "sgd", lines, 2, "grid"]
    web.post("/studies/new/", fill_in(web, configurations=lines, arrangement="list", num_repeats=2))
    listed = Study.objects.latest("pk")
    assert web.get(f"/studies/new/?study={listed.pk}").context["form"]["configurations"].value() == lines


def test_the_preview_tells_runs_and_what_would_be_left_out(web: Client) -> None:
    make_worker()
    values = {"axis_1": "precision", "values_1": "fp8, bf16-mixed", "num_repeats": 4}
    page = web.post("/studies/check/", fill_in(web, **values)).content.decode()
    assert "2 configurations × 4 repeats" in page
    assert "up to 30 runs" not in page
    assert "up to 30 runs" in web.post("/studies/check/", fill_in(web, **values, until_sure="on")).content.decode()
    assert "1 configuration would be left out" in page
    assert "not known: nothing like it was measured yet" in page
    assert 'id="notes-micro_batch_size"' in page
    assert "Say which values it takes" in web.post("/studies/check/", fill_in(web, axis_1="precision")).content.decode()
    assert not Job.objects.exists()

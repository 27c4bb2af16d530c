"""Fleet, account."""

from django.test import Client

from jobs.models import ApiToken, Job, User
from jobs.services.tokens import user_of_token
from tests.jobs.factories import make_worker
from tests.web.conftest import browser_of


def test_a_queue_is_paused_with_a_reason_and_resumed(boss: User, job: Job) -> None:
    staff = browser_of(boss)
    make_worker("pit-01")
    staff.post("/fleet/queues/default/pause/", {"reason": "cooling works"})
    page = staff.get("/fleet/").content.decode()
    assert "cooling works" in page
    assert "pit-01" in page
    staff.post("/fleet/queues/default/resume/")
    job.queue.refresh_from_db()
    assert not job.queue.is_paused


def test_a_pause_needs_a_reason(boss: User, job: Job) -> None:
    response = browser_of(boss).post("/fleet/queues/default/pause/", {"reason": " "}, follow=True)
    assert "Say why the queue is paused" in response.content.decode()
    job.queue.refresh_from_db()
    assert not job.queue.is_paused


def test_htmx_gets_the_fleets_living_part(boss: User, job: Job) -> None:
    page = browser_of(boss).get("/fleet/", headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in page
    assert "data-fleet-version" in page


def test_a_token_is_shown_once_and_works(web: Client, alice: User) -> None:
    response = web.post("/account/tokens/", {"name": "nightly script"})
    secret = response.context["secret"]
    assert secret in response.content.decode()
    assert user_of_token(secret) == alice
    assert secret not in web.get("/account/").content.decode()
    assert "no-store" in response.headers["Cache-Control"]


def test_a_token_needs_a_name(web: Client) -> None:
    assert web.post("/account/tokens/", {"name": ""}).status_code == 422
    assert not ApiToken.objects.exists()


def test_only_its_owner_revokes_a_token(web: Client, stranger: User) -> None:
    secret = web.post("/account/tokens/", {"name": "x"}).context["secret"]
    token = ApiToken.objects.get()
    assert browser_of(stranger).post(f"/account/tokens/{token.pk}/revoke/").status_code == 404
    assert user_of_token(secret)
    web.post(f"/account/tokens/{token.pk}/revoke/")
    assert user_of_token(secret) is None


def test_signing_in_and_out(alice: User) -> None:
    client = Client()
    wrong = client.post("/sign-in/", {"username": "alice", "password": "guess"})
    assert wrong.status_code == 200
    assert "Please enter a correct username and password" in wrong.content.decode()
    assert client.post("/sign-in/", {"username": "alice", "password": "open sesame"}).headers["Location"] == "/"
    assert client.post("/sign-out/").headers["Location"] == "/sign-in/"
    assert client.get("/").status_code == 302


def test_ten_wrong_passwords_lock_the_name_out(alice: User) -> None:
    client = Client()
    for _ in range(10):
        response = client.post("/sign-in/", {"username": "alice", "password": "guess"})
    assert response.status_code == 429
    assert "Too many attempts" in response.content.decode()


def test_the_password_is_changed(web: Client, alice: User) -> None:
    new = "a much longer phrase"
    data = {"old_password": "open sesame", "new_password1": new, "new_password2": new}
    assert web.post("/account/password/", data).headers["Location"] == "/account/password/changed/"
    alice.refresh_from_db()
    assert alice.check_password(new)

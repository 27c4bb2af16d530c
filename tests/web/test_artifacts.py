import pytest

from jobs.attempt_files import AttemptFiles, open_inside
from tests.jobs.factories import make_ended_job, make_team, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def cast(settings, tmp_path):
    """A job with a file, its attempt, and the folder."""
    settings.VAR = tmp_path
    team = make_team()
    owner = make_user(team=team)
    attempt = make_ended_job(owner, team=team).last_attempt
    folder = AttemptFiles(attempt.pk).artifacts / "profile"
    folder.mkdir(parents=True)
    (folder / "trace.json.gz").write_bytes(b"whole trace")
    attempt.artifacts = [{"name": "trace.json.gz", "kind": "trace", "file": "profile/trace.json.gz", "size_bytes": 11}]
    attempt.save()
    return owner, attempt, folder


def address(attempt, index=0):
    return f"/jobs/{attempt.job_id}/artifacts/{attempt.pk}/{index}/"


def test_a_file_is_listed_and_handed_out(client, cast):
    owner, attempt, _folder = cast
    client.force_login(owner)
    assert address(attempt) in client.get(f"/jobs/{attempt.job_id}/").content.decode()
    response = client.get(address(attempt))
    assert b"".join(response.streaming_content) == b"whole trace"
    assert response["Content-Disposition"] == 'attachment; filename="trace.json.gz"'
    assert response["Content-Type"] == "application/octet-stream"


def test_others_do_not_get_it(client, cast):
    _owner, attempt, _folder = cast
    client.force_login(make_user(team=make_team()))
    assert client.get(address(attempt)).status_code == 404


def test_a_file_that_is_gone_or_was_never_told_is_not_found(client, cast):
    owner, attempt, folder = cast
    client.force_login(owner)
    assert client.get(address(attempt, 1)).status_code == 404
    (folder / "trace.json.gz").unlink()
    assert client.get(address(attempt)).status_code == 404


def test_no_link_and_no_way_out_is_followed(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    root = tmp_path / "root"
    (root / "inside").mkdir(parents=True)
    (root / "inside" / "file").write_text("open")
    (root / "link").symlink_to(secret)
    (root / "folder").symlink_to(tmp_path)
    with open_inside(root, "inside/file") as file:
        assert file.read() == b"open"
    for relative in ("link", "folder/secret", "../secret", str(secret), "inside", "inside/../../secret", "a\0b"):
        assert open_inside(root, relative) is None

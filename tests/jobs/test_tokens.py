from datetime import timedelta

import pytest
from django.utils import timezone

from jobs.models import ApiToken
from jobs.services.tokens import create_token, revoke_token, user_of_token
from tests.jobs.factories import make_user

pytestmark = pytest.mark.django_db


def test_a_token_stands_for_its_user() -> None:
    user = make_user()
    _row, secret = create_token(user, "laptop")
    assert user_of_token(secret) == user
    assert user_of_token(secret + "x") is None


def test_the_secret_is_not_stored() -> None:
    row, secret = create_token(make_user())
    stored = ApiToken.objects.values().get(pk=row.pk)
    assert secret not in str(stored)
    assert len(row.prefix) < len(secret) / 2


def test_a_revoked_token_is_worthless() -> None:
    row, secret = create_token(make_user())
    revoke_token(row)
    revoke_token(row)
    assert user_of_token(secret) is None


def test_a_user_who_was_deactivated_has_no_token() -> None:
    user = make_user()
    _row, secret = create_token(user)
    user.is_active = False
    user.save()
    assert user_of_token(secret) is None


def test_its_use_is_noted_once_a_minute(django_assert_num_queries: object) -> None:
    row, secret = create_token(make_user())
    user_of_token(secret)
    row.refresh_from_db()
    first = row.last_used_at
    assert first is not None
    with django_assert_num_queries(1):  # type: ignore[operator]
        user_of_token(secret)
    ApiToken.objects.update(last_used_at=timezone.now() - timedelta(minutes=2))
    user_of_token(secret)
    row.refresh_from_db()
    assert row.last_used_at >= first

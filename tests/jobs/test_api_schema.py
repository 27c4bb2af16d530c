import json
import re
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from jobs.contract.spec import TrainSpec
from jobs.models import User


@pytest.fixture
def schema(api: Client) -> dict[str, Any]:
    return api.get("/api/v1/openapi.json").json()


def test_the_spec_is_the_request_schema(schema: dict[str, Any]) -> None:
    body = schema["paths"]["/api/v1/jobs"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/TrainSpec"}
    assert set(schema["components"]["schemas"]["TrainSpec"]["properties"]) == set(TrainSpec.model_fields)


def test_every_field_of_the_spec_is_a_filter(schema: dict[str, Any]) -> None:
    names = {parameter["name"] for parameter in schema["paths"]["/api/v1/jobs"]["get"]["parameters"]}
    assert names > set(TrainSpec.model_fields) | {"q", "view", "state", "tag", "order_by", "limit", "cursor"}


def test_every_operation_has_a_name_a_summary_and_says_how_it_fails(schema: dict[str, Any]) -> None:
    operations = [operation for methods in schema["paths"].values() for operation in methods.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        assert operation["summary"]
        assert "401" in operation["responses"]


def test_the_schema_is_for_users(db: None) -> None:
    response = Client().get("/api/v1/openapi.json")
    assert response.status_code == 401
    assert response.json()["errors"][0]["message"]


def test_the_docs_lead_a_visitor_to_sign_in(db: None) -> None:
    response = Client().get("/api/v1/docs")
    assert response.status_code == 302
    assert response["Location"] == "/sign-in/?next=/api/v1/docs"


def test_the_docs_load_nothing_from_another_host_and_run_no_inline_script(alice: User) -> None:
    client = Client()
    client.force_login(alice)
    response = client.get("/api/v1/docs")
    page = response.content.decode()
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert addresses
    for address in addresses:
        assert address.startswith("/static/")
        assert finders.find(address.removeprefix("/static/")), address
    for attributes, text in re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL):
        assert "src=" in attributes or 'type="application/json"' in attributes
        assert "src=" not in attributes or not text.strip()
    assert "script-src 'self'" in response["Content-Security-Policy"]
    settings = re.search(r'id="swagger-settings">(.*?)</script>', page, re.DOTALL)
    assert settings
    assert json.loads(settings[1])["url"] == "/api/v1/openapi.json"

"""What the form offers: the union of what the online workers have."""

import uuid

import pytest

from jobs.contract.catalog import BUILT_IN, Catalog, DataKind, DatasetInfo, ModelInfo
from jobs.selectors.hosts import known_catalog
from jobs.services.workers import register_worker
from tests.jobs.factories import make_worker

pytestmark = pytest.mark.django_db

PLAIN = DatasetInfo(name="cifar10", description="photographs", gives=DataKind.IMAGES)
TEAM_NET = ModelInfo(name="team-net", description="ours", takes=[DataKind.IMAGES])


def register(hostname: str, *datasets: DatasetInfo, models: tuple[ModelInfo, ...] = ()) -> None:
    facts = make_worker(hostname=hostname).host_facts
    catalog = Catalog(models=[*BUILT_IN.models, *models], datasets=[*BUILT_IN.datasets, *datasets])
    register_worker(uuid.uuid5(uuid.NAMESPACE_DNS, hostname), 1234, ["default"], facts, catalog)


def test_a_model_that_one_worker_adds_is_offered() -> None:
    register("one", models=(TEAM_NET,))
    register("two")
    assert known_catalog().model("team-net") == TEAM_NET


@pytest.mark.parametrize("order", [("one", "two"), ("two", "one")], ids=str)
def test_a_data_set_is_available_where_one_worker_can_load_it(order: tuple[str, str]) -> None:
    register(order[0], PLAIN)
    register(order[1], PLAIN.model_copy(update={"unavailable": "cifar10 needs a package."}))
    known = known_catalog().dataset("cifar10")
    assert known is not None
    assert known.unavailable == ""

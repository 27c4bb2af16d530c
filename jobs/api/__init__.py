"""The REST interface under /api/v1/: it parses, calls a service or a selector, and renders.

`api.urls` is mounted by `webapp.urls`. Every error has one shape, `{"errors": [{"field", "code", "message"}]}`, with an
empty field where it is about the request as a whole. Numbers that are not finite travel as the strings "NaN",
"Infinity" and "-Infinity".
"""

from jobs.api import actions as _actions  # noqa: F401 joins the router of the jobs
from jobs.api import exports as _exports  # noqa: F401 joins the router of the curves
from jobs.api.ablation import router as ablation_router
from jobs.api.app import PitwallAPI, Swagger, sign_in_for_docs
from jobs.api.audit import router as audit_router
from jobs.api.auth import AUTHENTICATION
from jobs.api.boards import router as boards_router
from jobs.api.claims import router as claims_router
from jobs.api.curves import router as curves_router
from jobs.api.fleet import router as fleet_router
from jobs.api.jobs import router as jobs_router
from jobs.api.options import router as options_router
from jobs.api.render import StrictJSONRenderer
from jobs.api.saved_views import router as views_router
from jobs.api.searches import router as searches_router
from jobs.api.studies import router as studies_router

__all__ = ["api"]

api = PitwallAPI(
    title="Pitwall",
    version="1",
    description="Submit PyTorch training jobs, follow them and compare what they measured.",
    urls_namespace="api",
    auth=AUTHENTICATION,
    docs=Swagger(),
    docs_decorator=sign_in_for_docs,
    renderer=StrictJSONRenderer(),
)
for _router in (
    jobs_router,
    views_router,
    studies_router,
    ablation_router,
    searches_router,
    curves_router,
    boards_router,
    claims_router,
    fleet_router,
    audit_router,
    options_router,
):
    api.add_router("", _router)

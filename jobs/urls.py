"""Addresses of the pages."""

from django.urls import path

from jobs.views import (
    account,
    artifacts,
    compare,
    fleet,
    history,
    job_actions,
    job_form,
    job_list,
    job_page,
    leaderboard,
    live,
    queue_page,
    use,
)

urlpatterns = [
    path("", job_list.job_list, name="job-list"),
    path("jobs/new/", job_form.job_new, name="job-new"),
    path("jobs/check/", job_form.job_check, name="job-check"),
    path("jobs/estimates/<slug:key>/", job_form.job_estimate, name="job-estimate"),
    path("jobs/act/", job_actions.jobs_act, name="jobs-act"),
    path("jobs/<int:pk>/", job_page.job_detail, name="job-detail"),
    path("jobs/<int:pk>/parts/", job_page.job_parts, name="job-parts"),
    path("jobs/<int:pk>/points/", job_page.job_points, name="job-points"),
    path("jobs/<int:pk>/log/", job_page.job_log, name="job-log"),
    path("jobs/<int:pk>/cancel/", job_page.job_cancel, name="job-cancel"),
    path("jobs/<int:pk>/artifacts/<int:attempt_pk>/<int:index>/", artifacts.job_artifact, name="job-artifact"),
    path("compare/", compare.compare_page, name="compare"),
    path("leaderboard/", leaderboard.leaderboard, name="leaderboard"),
    path("fleet/", fleet.fleet, name="fleet"),
    path("fleet/queues/<slug:name>/", queue_page.queue_page, name="queue"),
    path("fleet/queues/<slug:name>/settings/", queue_page.queue_change, name="queue-change"),
    path("fleet/queues/<slug:name>/pause/", fleet.queue_pause, name="queue-pause"),
    path("fleet/queues/<slug:name>/resume/", fleet.queue_resume, name="queue-resume"),
    path("fleet/workers/<int:pk>/<slug:action>/", fleet.worker_action, name="worker-action"),
    path("fleet/devices/<int:pk>/<slug:action>/", fleet.device_action, name="device-action"),
    path("fleet/use/", use.fleet_use, name="fleet-use"),
    path("fleet/use/figures/", use.fleet_figures, name="fleet-figures"),
    path("fleet/history/", history.fleet_history, name="fleet-history"),
    path("account/", account.account, name="account"),
    path("account/tokens/", account.token_create, name="token-create"),
    path("account/tokens/<int:pk>/revoke/", account.token_revoke, name="token-revoke"),
    path("live/", live.live, name="live"),
]

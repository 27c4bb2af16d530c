"""Files that a run left behind: listed on the job's page, and handed out one at a time."""

from django.http import FileResponse, Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from jobs.attempt_files import AttemptFiles, open_inside
from jobs.views.access import visible_job


@require_GET
def job_artifact(request: HttpRequest, pk: int, attempt_pk: int, index: int) -> FileResponse:
    """The file that stands at `index` among an attempt's artifacts; 404 where it is gone or no file of that folder."""
    attempt = get_object_or_404(visible_job(request, pk).attempts, pk=attempt_pk)
    if index >= len(attempt.artifacts):
        raise Http404
    artifact = attempt.artifacts[index]
    file = open_inside(AttemptFiles(attempt.pk).artifacts, artifact["file"])
    if file is None:
        raise Http404
    return FileResponse(file, as_attachment=True, filename=artifact["name"], content_type="application/octet-stream")

"""Files that a run left behind: listed on the job's page, and handed out one at a time."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

from django.http import FileResponse, Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from jobs.attempt_files import AttemptFiles
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


def open_inside(root: Path, relative: str) -> BinaryIO | None:
    """A regular file below `root` by its relative path; None where there is none, or only through a link."""
    path = root / relative
    try:
        if path.resolve() != root.resolve() / relative or not path.resolve().is_relative_to(root.resolve()):
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return os.fdopen(descriptor, "rb")

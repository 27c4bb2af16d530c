"""A study keeps to the type of device that its first run got; see `jobs.selectors.study_devices`."""

from collections.abc import Iterable

from jobs.contract.spec import DeviceKind
from jobs.models import Device, Job, Study


def keep_type(job: Job, devices: Iterable[Device]) -> None:
    """Note the type of device that a study's run starts on. Call it in the transaction of the claim.

    Devices of several types are nothing to keep to: others like them may never be free together.
    """
    types = {(device.kind, device.name) for device in devices}
    if job.study_id is None or len(types) != 1:
        return
    [(kind, name)] = types
    kept = {kind: name} | ({"auto": kind} if job.train_spec.device is DeviceKind.AUTO else {})
    study = Study.objects.get(pk=job.study_id)
    if not kept.items() <= study.device_names.items():
        study.device_names |= kept
        study.save(update_fields=["device_names"])

"""What is stored: a noun per file."""

from jobs.models.account import ApiToken, Membership, Team, User
from jobs.models.attempt import Attempt
from jobs.models.audit import AuditAction, AuditEntry
from jobs.models.board import Board, BoardEntry, Reproduction
from jobs.models.curve import CurveBlock, CurveChunk
from jobs.models.device import Device, DeviceUse
from jobs.models.estimate import SpecEstimate
from jobs.models.job import Job
from jobs.models.node import AttemptNode
from jobs.models.queue import Queue
from jobs.models.saved_view import SavedView, ViewPage
from jobs.models.search import Search
from jobs.models.study import Study, Workload
from jobs.models.tag import JobTag, TeamTag
from jobs.models.worker import Worker

__all__ = [
    "ApiToken",
    "Attempt",
    "AttemptNode",
    "AuditAction",
    "AuditEntry",
    "Board",
    "BoardEntry",
    "CurveBlock",
    "CurveChunk",
    "Device",
    "DeviceUse",
    "Job",
    "JobTag",
    "Membership",
    "Queue",
    "Reproduction",
    "SavedView",
    "Search",
    "SpecEstimate",
    "Study",
    "Team",
    "TeamTag",
    "User",
    "ViewPage",
    "Worker",
    "Workload",
]

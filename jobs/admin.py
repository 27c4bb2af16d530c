"""Django's admin for staff. What services decide (states, outcomes, leases) is shown, never edited."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from jobs.models import (
    ApiToken,
    Attempt,
    AttemptNode,
    AuditEntry,
    Device,
    Job,
    Membership,
    Queue,
    Search,
    Study,
    Team,
    User,
    Worker,
    Workload,
)
from jobs.services.queues import SETTINGS, change_queue

admin.site.unregister(Group)  # rights come from teams and from being staff


class ReadOnly(ModelAdmin):  # type: ignore[misc]
    """To look at: rows come and go by services alone."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody."""
        return False


class MembershipInline(TabularInline):  # type: ignore[misc]
    """The teams of a person, the people of a team."""

    model = Membership
    extra = 0
    autocomplete_fields = ["user", "team"]


@admin.register(User)
class PersonAdmin(UserAdmin, ModelAdmin):  # type: ignore[misc, type-arg]
    """People, with their teams."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    inlines = [MembershipInline]
    list_display = ["username", "email", "is_staff", "is_active", "last_login"]


@admin.register(Team)
class TeamAdmin(ModelAdmin):  # type: ignore[misc]
    """Teams, with their people."""

    list_display = ["name", "created_at"]
    search_fields = ["name"]
    inlines = [MembershipInline]


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnly):
    """Tokens by their first characters; the secret is nowhere."""

    list_display = ["prefix", "user", "name", "created_at", "last_used_at", "revoked_at"]
    list_filter = ["revoked_at"]
    search_fields = ["prefix", "name", "user__username"]
    list_select_related = ["user"]
    exclude = ["digest"]


@admin.register(Job)
class JobAdmin(ReadOnly):
    """Jobs: cancel one from its page."""

    list_display = ["id", "title", "state", "owner", "team", "queue", "priority", "created_at", "ended_at"]
    list_filter = ["state", "team", "queue"]
    search_fields = ["id", "name", "owner__username"]
    list_select_related = ["owner", "team", "queue"]
    date_hierarchy = "created_at"
    show_full_result_count = False


@admin.register(Attempt)
class AttemptAdmin(ReadOnly):
    """Attempts, with what they measured."""

    list_display = ["id", "job", "number", "outcome", "phase", "worker", "device_name", "claimed_at", "ended_at"]
    list_filter = ["outcome", "worker"]
    search_fields = ["job__id", "job__name"]
    list_select_related = ["job", "worker"]
    show_full_result_count = False


@admin.register(AttemptNode)
class AttemptNodeAdmin(ReadOnly):
    """The other hosts of attempts on several nodes."""

    list_display = ["attempt", "rank", "worker", "outcome", "joined_at", "ended_at"]
    list_filter = ["outcome", "worker"]
    search_fields = ["attempt__job__id", "attempt__job__name"]
    list_select_related = ["attempt__job", "worker"]
    show_full_result_count = False


@admin.register(Study)
class StudyAdmin(ReadOnly):
    """Studies, as they were asked for."""

    list_display = ["id", "name", "owner", "team", "queue", "created_at"]
    list_filter = ["team", "queue"]
    search_fields = ["id", "name", "owner__username"]
    list_select_related = ["owner", "team", "queue"]


@admin.register(Search)
class SearchAdmin(ReadOnly):
    """Searches for the fastest that fits."""

    list_display = ["id", "name", "stage", "owner", "team", "queue", "created_at", "ended_at"]
    list_filter = ["stage", "team", "queue"]
    search_fields = ["id", "name", "owner__username"]
    list_select_related = ["owner", "team", "queue"]


@admin.register(Workload)
class WorkloadAdmin(ReadOnly):
    """The margins of equal loss."""

    list_display = ["key", "loss_margin", "fixed_at"]
    search_fields = ["key"]


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnly):
    """Who did what, when and why."""

    list_display = ["at", "actor_name", "action", "subject", "reason"]
    list_filter = ["action"]
    search_fields = ["actor_name", "subject", "reason"]
    date_hierarchy = "at"
    show_full_result_count = False


@admin.register(Queue)
class QueueAdmin(ModelAdmin):  # type: ignore[misc]
    """Queues; they are paused on the fleet's page, where a reason is asked for."""

    list_display = ["name", "description", "default_priority", "is_paused", "pause_reason"]
    search_fields = ["name"]
    readonly_fields = ["paused_at", "paused_by", "pause_reason"]

    def save_model(self, request: HttpRequest, obj: Queue, form: Any, change: bool) -> None:
        """A change goes through the service, which notes it."""
        if not change:
            super().save_model(request, obj, form, change)
        elif isinstance(request.user, User):
            values = {name: form.cleaned_data[name] for name in form.changed_data if name in SETTINGS}
            change_queue(Queue.objects.get(pk=obj.pk), request.user, **values)

    def get_readonly_fields(self, request: HttpRequest, obj: Queue | None = None) -> list[str]:
        """The name is part of addresses and of workers' settings: it stays."""
        return [*self.readonly_fields, "name"] if obj else list(self.readonly_fields)


@admin.register(Worker)
class WorkerAdmin(ReadOnly):
    """Worker hosts."""

    list_display = ["hostname", "version", "is_draining", "started_at", "heartbeat_at", "stopped_at"]
    search_fields = ["hostname"]


@admin.register(Device)
class DeviceAdmin(ReadOnly):
    """Devices and their leases."""

    list_display = ["worker", "kind", "index", "name", "is_present", "attempt", "quarantine_reason"]
    list_filter = ["kind", "is_present"]
    list_select_related = ["worker", "attempt__job"]

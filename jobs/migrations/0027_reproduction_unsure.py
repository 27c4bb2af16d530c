"""What was called verified on an interval that is not within 5 % is not enough to tell."""

from django.db import migrations, models

# As `jobs.reproduction` had it when this was written.
WITHIN = 0.05


def judge_again(apps, schema_editor):
    """Only what was verified: losses of the others are not kept."""
    for one in apps.get_model("jobs", "Reproduction").objects.filter(agreement="agreed"):
        low, high = one.finding.get("low", 0), one.finding.get("high", float("inf"))
        if not (1 / (1 + WITHIN) < low and high < 1 + WITHIN):
            one.agreement = "unsure"
            one.save(update_fields=["agreement"])


class Migration(migrations.Migration):

    dependencies = [
        ("jobs", "0026_study_device_names"),
    ]

    operations = [
        migrations.AlterField(
            model_name="reproduction",
            name="agreement",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "being reproduced"),
                    ("agreed", "verified"),
                    ("differed", "not reproduced"),
                    ("unsure", "not enough to tell"),
                    ("moved", "ran on other ground"),
                    ("stopped", "stopped"),
                ],
                default="",
                max_length=10,
            ),
        ),
        migrations.RunPython(judge_again, migrations.RunPython.noop),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0025_job_by_owner'),
    ]

    operations = [
        migrations.AddField(
            model_name='study',
            name='device_names',
            field=models.JSONField(blank=True, default=dict),
        ),
    ]

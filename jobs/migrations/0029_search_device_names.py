from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0028_audit_search'),
    ]

    operations = [
        migrations.AddField(
            model_name='search',
            name='device_names',
            field=models.JSONField(blank=True, default=dict),
        ),
    ]

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0020_ranked_by_outcome"),
    ]

    operations = [
        migrations.AddField(
            model_name="savedview",
            name="page",
            field=models.CharField(
                choices=[("list", "runs list"), ("comparison", "comparison")],
                default="list",
                max_length=16,
                verbose_name="page",
            ),
        ),
    ]

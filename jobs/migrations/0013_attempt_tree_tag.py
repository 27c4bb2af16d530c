from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0012_studies'),
    ]

    operations = [
        migrations.AddField(
            model_name='attempt',
            name='tree_tag',
            field=models.CharField(blank=True, max_length=32),
        ),
    ]

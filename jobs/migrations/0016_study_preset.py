from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0015_smaller_of'),
    ]

    operations = [
        migrations.AddField(
            model_name='study',
            name='preset',
            field=models.CharField(blank=True, max_length=60),
        ),
    ]

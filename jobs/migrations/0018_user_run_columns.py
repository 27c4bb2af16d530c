from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0017_boards'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='run_columns',
            field=models.CharField(blank=True, max_length=3000),
        ),
    ]

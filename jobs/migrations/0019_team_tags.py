import django.db.models.deletion
from django.db import migrations, models


def copy_tags(apps, schema_editor):
    job_tag, team_tag = apps.get_model('jobs', 'JobTag'), apps.get_model('jobs', 'TeamTag')
    known = job_tag.objects.order_by().values_list('job__team_id', 'name').distinct()
    team_tag.objects.bulk_create([team_tag(team_id=team_id, name=name) for team_id, name in known])


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0018_user_run_columns'),
    ]

    operations = [
        migrations.CreateModel(
            name='TeamTag',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=50, verbose_name='name')),
                ('team', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='known_tags', to='jobs.team')),
            ],
            options={
                'verbose_name': 'tag of a team',
                'verbose_name_plural': 'tags of a team',
                'ordering': ['name'],
                'constraints': [models.UniqueConstraint(fields=('team', 'name'), name='one_known_tag_per_team')],
            },
        ),
        migrations.RunPython(copy_tags, migrations.RunPython.noop),
    ]

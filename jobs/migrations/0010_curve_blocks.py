import django.db.models.deletion
from django.db import migrations, models
from django.db.models import F, Max, OuterRef, Subquery


def count_flushes(apps, schema_editor):
    """Every chunk of before is one flush, counted from 0."""
    Attempt, CurveChunk = apps.get_model("jobs", "Attempt"), apps.get_model("jobs", "CurveChunk")
    chunks = CurveChunk.objects.filter(attempt=OuterRef("pk")).order_by().values("attempt")
    stored = Attempt.objects.filter(chunks__isnull=False)
    stored.update(num_flushes=Subquery(chunks.annotate(last=Max("sequence")).values("last")) + 1)


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0009_several_nodes'),
    ]

    operations = [
        migrations.AddField(
            model_name='attempt',
            name='curve_form',
            field=models.CharField(choices=[('as_told', 'as they were told'), ('compacted', 'compacted'), ('coarse', 'coarse levels only')], default='as_told', max_length=10),
        ),
        migrations.AddField(
            model_name='attempt',
            name='num_flushes',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='action',
            field=models.CharField(choices=[('cancel', 'Cancel'), ('requeue', 'Queue again'), ('clone', 'Copy'), ('priority', 'Priority'), ('reorder', 'Order'), ('move', 'Move to another queue'), ('time_limit', 'Time limit'), ('pause', 'Pause'), ('resume', 'Resume'), ('limits', 'Queue settings'), ('drain', 'Drain'), ('undrain', 'End of drain'), ('forget', 'Forget'), ('quarantine', 'Quarantine'), ('release', 'Release'), ('drop_points', 'Drop points')], max_length=20, verbose_name='what'),
        ),
        migrations.AddIndex(
            model_name='attempt',
            index=models.Index(fields=['curve_form', 'ended_at'], name='attempt_by_curve_form'),
        ),
        migrations.CreateModel(
            name='CurveBlock',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('series', models.TextField()),
                ('number', models.PositiveIntegerField()),
                ('first_step', models.BigIntegerField()),
                ('last_step', models.BigIntegerField()),
                ('last_wall_s', models.FloatField()),
                ('num_points', models.PositiveIntegerField()),
                ('coarse', models.BinaryField(null=True)),
                ('medium', models.BinaryField(null=True)),
                ('full', models.BinaryField(null=True)),
                ('attempt', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='blocks', to='jobs.attempt')),
            ],
            options={
                'verbose_name': 'curve block',
                'verbose_name_plural': 'curve blocks',
                'ordering': ['attempt', 'series', 'number'],
                'constraints': [models.UniqueConstraint(fields=('attempt', 'series', 'number'), name='one_block_per_number')],
            },
        ),
        migrations.RunPython(count_flushes, migrations.RunPython.noop, elidable=True),
    ]

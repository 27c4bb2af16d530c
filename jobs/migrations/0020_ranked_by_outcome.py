from django.db import migrations, models

RANKED_METRICS = [
    'steady_step_time_ms',
    'samples_per_s',
    'first_step_s',
    'train_s',
    'final_train_loss',
    'final_eval_loss',
    'eval_accuracy',
    'peak_rss_bytes',
    'peak_allocated_bytes',
]


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0019_team_tags'),
    ]

    operations = [
        migrations.RemoveIndex(model_name='job', name='job_by_queue'),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(
                condition=models.Q(('outcome__isnull', True)),
                fields=['state', 'queue', 'queued_at', 'team', 'fence', 'cancel_requested_at'],
                name='job_open',
            ),
        ),
        migrations.AddIndex(
            model_name='job',
            index=models.Index(
                condition=models.Q(('ended_at__isnull', False)),
                fields=['team', 'ended_at'],
                name='job_by_team_end',
            ),
        ),
        *(migrations.AddIndex(
            model_name='job',
            index=models.Index(
                condition=models.Q((f'{metric}__isnull', False)),
                fields=['team', 'outcome', metric, 'id', 'created_at'],
                name=f'job_to_{metric}',
            ),
        ) for metric in RANKED_METRICS),
    ]

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0013_attempt_tree_tag'),
    ]

    operations = [
        migrations.AddField(
            model_name='study',
            name='pause_reason',
            field=models.CharField(blank=True, max_length=500, verbose_name='pause reason'),
        ),
        migrations.AddField(
            model_name='study',
            name='paused_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='study',
            name='paused_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='auditentry',
            name='study',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='audit', to='jobs.study'),
        ),
        migrations.AddField(
            model_name='study',
            name='adds_repeats',
            field=models.BooleanField(default=False),
        ),
        migrations.AddIndex(
            model_name='study',
            index=models.Index(condition=models.Q(('adds_repeats', True)), fields=['id'], name='study_adds_repeats'),
        ),
        migrations.AddField(
            model_name='study',
            name='share_token',
            field=models.CharField(blank=True, max_length=64, null=True, unique=True),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='action',
            field=models.CharField(choices=[('cancel', 'Cancel'), ('requeue', 'Queue again'), ('clone', 'Copy'), ('priority', 'Priority'), ('reorder', 'Order'), ('move', 'Move to another queue'), ('time_limit', 'Time limit'), ('tags', 'Tags'), ('pause', 'Pause'), ('resume', 'Resume'), ('limits', 'Queue settings'), ('drain', 'Drain'), ('undrain', 'End of drain'), ('forget', 'Forget'), ('quarantine', 'Quarantine'), ('release', 'Release'), ('extend', 'Extend'), ('share', 'Share'), ('unshare', 'End of share'), ('drop_points', 'Drop points')], max_length=20, verbose_name='what'),
        ),
    ]

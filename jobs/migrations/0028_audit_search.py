import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('jobs', '0027_reproduction_unsure'),
    ]

    operations = [
        migrations.AddField(
            model_name='auditentry',
            name='search',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='audit', to='jobs.search'),
        ),
        migrations.AlterField(
            model_name='auditentry',
            name='action',
            field=models.CharField(choices=[('cancel', 'Cancel'), ('requeue', 'Queue again'), ('clone', 'Copy'), ('fit', 'Smaller micro-batches'), ('priority', 'Priority'), ('reorder', 'Order'), ('move', 'Move to another queue'), ('time_limit', 'Time limit'), ('tags', 'Tags'), ('pause', 'Pause'), ('resume', 'Resume'), ('limits', 'Queue settings'), ('drain', 'Drain'), ('undrain', 'End of drain'), ('forget', 'Forget'), ('quarantine', 'Quarantine'), ('release', 'Release'), ('extend', 'Extend'), ('share', 'Share'), ('unshare', 'End of share'), ('drop_points', 'Drop points'), ('baseline', 'Baseline'), ('stop', 'Stop')], max_length=20, verbose_name='what'),
        ),
    ]

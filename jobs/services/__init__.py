"""Every write. Each change of a job's state is one guarded update: 0 rows changed means "you are not the owner"."""

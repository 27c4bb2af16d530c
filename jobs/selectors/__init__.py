"""Every read."""

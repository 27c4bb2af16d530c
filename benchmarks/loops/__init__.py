"""The same training written without the engine: by hand, and with other frameworks. A file each, by name."""

"""What is measured, and how; README.md says how to read it."""

"""The pages: each view parses, calls a service or a selector, and renders."""

"""The contract: what a training job is, which combinations are allowed, and what an engine reports back.

Pure Python with pydantic; imports neither Django nor torch, so that the web, the workers and the engine can all
speak it. One type per arrow: a spec goes down to the engine, events come up from it.
"""

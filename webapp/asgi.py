"""The ASGI application that uvicorn serves."""

import gc
import os

from django.core.asgi import get_asgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

application = get_asgi_application()

# Loads every view now: a broken page stops the server from starting, and the first visitor does not wait for imports.
get_resolver().url_patterns  # noqa: B018 read for what it loads

# What is loaded stays until the end. Were the garbage collector to walk through all of it again and again, as it does
# by default, every twentieth page would take a tenth of a second more.
gc.collect()
gc.freeze()

import subprocess
import sys


def test_the_contract_imports_neither_torch_nor_django():
    code = (
        "import importlib, pkgutil, sys, jobs.contract as c\n"
        "for m in pkgutil.iter_modules(c.__path__): importlib.import_module(f'jobs.contract.{m.name}')\n"
        "print({'torch', 'django', 'celery', 'redis'} & set(sys.modules))"
    )
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "set()"

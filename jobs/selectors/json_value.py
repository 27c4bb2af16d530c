"""A value inside a JSON column as the database's own number or text, so that it is compared and sorted as one."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import CharField, FloatField, Func
from django.db.models.sql.compiler import SQLCompiler

Sql = tuple[str, tuple[Any, ...]]


class _JsonValue(Func):
    """What stands under a key of a column."""

    def __init__(self, column: Any, key: str) -> None:
        super().__init__(column)
        self.key = key

    def _compiled(self, compiler: SQLCompiler, template: str, key: str) -> Sql:
        column, params = compiler.compile(self.get_source_expressions()[0])
        each = (*params, key)
        return template.replace("{column}", column), each * template.count("{column}")


class JsonText(_JsonValue):
    """The text under a key of a column; null where there is none. Booleans are 0 and 1."""

    output_field = CharField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_context: Any) -> Sql:
        """SQLite gives the value in its own type."""
        return self._compiled(compiler, "JSON_EXTRACT({column}, %s)", f"$.{self.key}")

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_context: Any) -> Sql:
        """PostgreSQL gives every value as a text."""
        return self._compiled(compiler, "({column} ->> %s)", self.key)


class JsonNumber(_JsonValue):
    """The number under a key of a column; null where there is none, or where it is a text such as "NaN"."""

    output_field = FloatField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_context: Any) -> Sql:
        """Booleans come as 0 and 1."""
        number = "(CASE WHEN JSON_TYPE({column}, %s) <> 'text' THEN JSON_EXTRACT({column}, %s) END)"
        return self._compiled(compiler, number, f"$.{self.key}")

    def as_postgresql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **_context: Any) -> Sql:
        """Booleans are made 0 and 1, as SQLite does."""
        number = (
            "(CASE jsonb_typeof({column} -> %s) WHEN 'number' THEN ({column} ->> %s)::double precision"
            " WHEN 'boolean' THEN ({column} ->> %s)::boolean::int::double precision END)"
        )
        return self._compiled(compiler, number, self.key)

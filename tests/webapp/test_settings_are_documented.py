"""The settings page lists every variable with the description that the code gives it."""

from webapp.environment import PROJECT_ROOT, Environment


def test_every_setting_stands_in_the_docs_with_its_description() -> None:
    page = (PROJECT_ROOT / "docs" / "settings.md").read_text()
    for name, field in Environment.model_fields.items():
        assert f"`PITWALL_{name.upper()}`" in page
        assert field.description
        assert field.description in page

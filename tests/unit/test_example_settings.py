"""The settings file that deploy/ offers to start from is one that the program accepts."""

from pathlib import Path

from config.loading import load_settings

EXAMPLE = Path(__file__).parents[2] / "deploy" / "ardvark.toml"


def test_the_example_settings_are_accepted_and_open_no_door() -> None:
    settings = load_settings(EXAMPLE)
    assert len(settings.origins) == 3
    assert settings.base_url == "https://registry.example/api/v1/"
    assert not settings.network.allow_http
    assert settings.network.allow_private == ()

import click


@click.command()
def demo() -> None:
    """Run the sample federation."""

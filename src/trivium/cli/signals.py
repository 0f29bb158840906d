"""`trivium signals`: prints a dashboard for Grafana, or alert rules for Prometheus, of what a server counts."""

import click

from trivium.wires.prometheus import signals

_KINDS = {"dashboard": signals.dashboard, "rules": signals.rules}


@click.command("signals")
@click.argument("kind", type=click.Choice(list(_KINDS)))
def command(kind: str) -> None:
    """Print what shows and guards a server's metrics: a dashboard for Grafana to import, in JSON, or alert rules for
    Prometheus, in YAML.
    """
    click.echo(_KINDS[kind](), nl=False)

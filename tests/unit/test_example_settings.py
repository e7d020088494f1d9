"""What deploy/ offers to start from is accepted by the program and fits together: settings, commands, ports, names."""

import re
import shlex
from collections.abc import Iterator
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from config.loading import load_settings
from config.settings import Settings
from crawler.cli import cli
from index.api.app import routes

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
EXAMPLES = sorted(DEPLOY.rglob("*.toml"))
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
UNITS = sorted(DEPLOY.glob("*.service"))
SETTINGS_PATH = "/etc/ardvark/ardvark.toml"


def documents(*paths: Path) -> list[dict[str, Any]]:
    return [document for path in paths for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def of_kind(*kinds: str) -> list[dict[str, Any]]:
    return [document for document in documents(*MANIFESTS) if document["kind"] in kinds]


def pods() -> Iterator[tuple[str, dict[str, Any]]]:
    for document in of_kind("Deployment", "StatefulSet", "Job"):
        yield document["metadata"]["name"], document["spec"]["template"]["spec"]


def services() -> dict[str, Any]:
    (compose,) = documents(DEPLOY / "compose.yaml")
    return {name: service for name, service in compose["services"].items() if service["image"] == "ardvark"}


def unit(path: Path) -> ConfigParser:
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]
    parser.read_string(re.sub(r"(?m)^#.*\n", "", path.read_text(encoding="utf-8")))
    return parser


def role_of(arguments: list[str]) -> str | None:
    """Read a command line as the program does; gives the role of a daemon."""
    option, settings, name, *rest = arguments
    assert (option, settings) == ("--config", SETTINGS_PATH)
    context = click.Context(cli)
    command = cli.get_command(context, name)
    assert command is not None
    if isinstance(command, click.Group):
        name, *rest = rest
        command = command.get_command(context, name)
        assert command is not None
    return command.make_context(name, rest).params.get("role")


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_settings_are_accepted_and_open_no_door(path: Path) -> None:
    settings = load_settings(path)
    assert len(settings.origins) >= 2
    assert settings.base_url == "https://registry.example/api/v1/"
    assert settings.contact_url == "https://registry.example/crawler"
    assert not settings.network.allow_http
    assert settings.network.allow_private == ()


def test_every_variable_that_a_deployment_sets_is_a_setting() -> None:
    texts = [path.read_text(encoding="utf-8") for path in DEPLOY.rglob("*") if path.is_file()]
    named = {name for text in texts for name in re.findall(r"ARDVARK_([A-Z]+)__([A-Z_]+)", text)}
    assert ("STORAGE", "URL") in named
    for section, key in named:
        fields = getattr(Settings.model_fields[section.lower()].annotation, "model_fields", {})
        assert key.lower() in fields


# --- the image --------------------------------------------------------------------------------------------------------


def test_the_image_is_built_in_two_stages_and_does_not_run_as_root() -> None:
    lines = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").splitlines()
    stages = [line for line in lines if line.startswith("FROM ")]
    assert stages == ["FROM python:3.11-slim AS build", "FROM python:3.11-slim"]
    (user,) = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert int(user) > 0
    assert any(f"--uid {user} " in line for line in lines)
    assert {pod["securityContext"]["runAsUser"] for _, pod in pods()} == {int(user)}


def test_every_file_that_the_image_is_built_from_exists() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    copied = [name for line in re.findall(r"(?m)^COPY (?!--)(.+) \S+$", text) for name in line.split()]
    assert {"pyproject.toml", "crawler"} <= set(copied)
    assert [name for name in copied if not (ROOT / name).exists()] == []


def test_the_image_asks_after_its_health_where_every_role_answers() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    (port,) = re.findall(r"(?m)^ENV ARDVARK_METRICS__LISTEN=0\.0\.0\.0:(\d+)$", text)
    assert f"http://127.0.0.1:{port}/readyz" in text
    assert re.search(rf"(?m)^EXPOSE 8080 {port}$", text)


def test_no_image_is_named_with_a_registry() -> None:
    named = [container["image"] for _, pod in pods() for container in pod["containers"]]
    named += [service["image"] for service in documents(DEPLOY / "compose.yaml")[0]["services"].values()]
    assert named
    assert [name for name in named if "/" in name] == []


# --- roles ------------------------------------------------------------------------------------------------------------


def test_compose_runs_every_role_and_one_scheduler() -> None:
    roles = {name: role_of(service["command"]) for name, service in services().items()}
    assert roles == {"upgrade": None, "api": "api", "crawler": "crawler", "scheduler": "scheduler"}
    assert services()["scheduler"].get("deploy", {}).get("replicas", 1) == 1
    for name, service in services().items():
        # The image's own check asks a daemon, whatever its role.
        assert (service.get("healthcheck") == {"disable": True}) == (name == "upgrade")
        url = service["environment"]["ARDVARK_STORAGE__URL"]
        assert url.startswith("postgresql+asyncpg://ardvark:")
        assert url.endswith("@database/ardvark")
    for name in ("api", "crawler", "scheduler"):
        assert services()[name]["depends_on"] == {"upgrade": {"condition": "service_completed_successfully"}}


def test_kubernetes_runs_every_role_and_one_scheduler() -> None:
    roles = {name: role_of(pod["containers"][0]["args"]) for name, pod in pods()}
    assert roles == {
        "ardvark-api": "api",
        "ardvark-crawler": "crawler",
        "ardvark-scheduler": "scheduler",
        "ardvark-upgrade": None,
    }
    replicas = {document["metadata"]["name"]: document["spec"]["replicas"] for document in of_kind("Deployment")}
    assert replicas["ardvark-scheduler"] == 1
    assert replicas["ardvark-crawler"] > 1


def test_units_start_a_role() -> None:
    for path in UNITS:
        program, *arguments = shlex.split(unit(path)["Service"]["ExecStart"])
        assert program == "/opt/ardvark/bin/ardvark"
        for instance in ("scheduler", "crawler", "api") if "@" in path.name else ("all",):
            assert role_of([argument.replace("%i", instance) for argument in arguments]) == instance
        assert unit(path)["Service"]["User"] == "ardvark"


def test_every_process_gets_longer_to_end_than_its_visits_do() -> None:
    graces = [pod["terminationGracePeriodSeconds"] for _, pod in pods()]
    graces += [int(service["stop_grace_period"].removesuffix("s")) for service in services().values()]
    graces += [int(unit(path)["Service"]["TimeoutStopSec"]) for path in UNITS]
    for path in EXAMPLES:
        assert min(graces) >= load_settings(path).crawl.shutdown_grace.total_seconds() + 5


# --- kubernetes -------------------------------------------------------------------------------------------------------


def test_every_manifest_is_applied_and_has_a_kind_and_a_name() -> None:
    (kustomization,) = of_kind("Kustomization")
    assert set(kustomization["resources"]) == {path.name for path in MANIFESTS} - {"kustomization.yaml"}
    (generated,) = kustomization["configMapGenerator"]
    assert generated["files"] == ["ardvark.toml=settings.toml"]
    objects = [document for document in documents(*MANIFESTS) if document["kind"] != "Kustomization"]
    found = [(document["kind"], document["metadata"]["name"]) for document in objects]
    assert len(found) == len(set(found))


def test_what_pods_refer_to_is_there() -> None:
    (kustomization,) = of_kind("Kustomization")
    maps = {item["name"] for item in kustomization["configMapGenerator"]}
    secrets = {document["metadata"]["name"]: set(document["stringData"]) for document in of_kind("Secret")}
    for _, pod in pods():
        (container,) = pod["containers"]
        (variable,) = container["env"]
        reference = variable["valueFrom"]["secretKeyRef"]
        assert reference["key"] in secrets[reference["name"]]
        volumes = {volume["name"] for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes
        assert {volume["configMap"]["name"] for volume in pod["volumes"] if "configMap" in volume} <= maps
    for document in of_kind("Deployment"):
        labels = document["spec"]["template"]["metadata"]["labels"]
        assert document["spec"]["selector"]["matchLabels"].items() <= labels.items()
    (service,) = of_kind("Service")
    chosen = [
        document["metadata"]["name"]
        for document in of_kind("Deployment")
        if service["spec"]["selector"].items() <= document["spec"]["template"]["metadata"]["labels"].items()
    ]
    assert chosen == ["ardvark-api"]


def test_the_api_is_probed_where_it_answers() -> None:
    (container,) = dict(pods())["ardvark-api"]["containers"]
    probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startup": "/healthz",
        "liveness": "/healthz",
        "readiness": "/readyz",
    }
    assert {probe["path"] for probe in probes.values()} <= {route.path for route in routes()}
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert {probe["port"] for probe in probes.values()} == {"http"}
    assert load_settings(DEPLOY / "kubernetes" / "settings.toml").api.listen == f"0.0.0.0:{ports['http']}"


def test_every_role_is_probed_and_scraped_where_it_answers() -> None:
    listen = load_settings(DEPLOY / "kubernetes" / "settings.toml").metrics.listen
    for document in of_kind("Deployment"):
        template = document["spec"]["template"]
        (container,) = template["spec"]["containers"]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        assert listen == f"0.0.0.0:{ports['metrics']}"
        assert template["metadata"]["annotations"] == {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(ports["metrics"]),
            "prometheus.io/path": "/metrics",
        }
        probes = {name: container[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
        assert {name: probe["path"] for name, probe in probes.items()} == {
            "startup": "/healthz",
            "liveness": "/healthz",
            "readiness": "/readyz",
        }
        assert {probe["port"] for probe in probes.values()} <= set(ports)
    # What is for monitoring alone is offered to nobody else.
    assert [port["targetPort"] for service in of_kind("Service") for port in service["spec"]["ports"]] == ["http"]


def test_no_pod_may_do_more_than_it_needs() -> None:
    for _, pod in pods():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert set(container["resources"]["limits"]) == {"memory"}

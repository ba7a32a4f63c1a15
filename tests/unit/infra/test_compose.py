"""The compose file and its Dockerfile hold together. A wrong path, name or port is seen without an engine."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).resolve().parents[3]
FOLDER = PROJECT / "infra" / "compose"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (FOLDER / "Dockerfile").read_text()


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_built_from_what_is_here_or_is_an_image_by_name(name: str) -> None:
    service = SERVICES[name]
    if "build" not in service:
        image, _, version = service["image"].partition(":")
        assert version
        assert "." not in image.partition("/")[0]
        return
    context = (FOLDER / service["build"]["context"]).resolve()
    assert context == PROJECT
    assert (context / service["build"]["dockerfile"]) == FOLDER / "Dockerfile"
    assert service["build"]["target"] in stages()


@pytest.mark.parametrize("name", SERVICES)
def test_ports_are_published_on_the_loopback_only(name: str) -> None:
    assert [port for port in SERVICES[name].get("ports", []) if not port.startswith("127.0.0.1:")] == []


def test_published_ports_differ() -> None:
    ports = [port.split(":")[1] for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == len(set(ports))


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_waits_for_services_that_can_say_they_are_ready(name: str) -> None:
    for needed, how in SERVICES[name].get("depends_on", {}).items():
        assert needed in SERVICES
        assert ("healthcheck" in SERVICES[needed]) == (how["condition"] == "service_healthy")


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_that_stays_has_a_health_check(name: str) -> None:
    ends = SERVICES[name]["restart"].startswith("on-failure")
    assert ends != ("healthcheck" in SERVICES[name])


@pytest.mark.parametrize("name", SERVICES)
def test_volumes_are_declared_or_lie_here(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        source = re.sub(r"\$\{[^}]*\}", "$", volume).split(":")[0]
        if source.startswith("./"):
            assert (FOLDER / source).is_file()
        elif not source.startswith("$"):
            assert source in COMPOSE["volumes"]


def test_every_variable_is_in_the_example_and_no_secret_has_a_value_there() -> None:
    asked = set(re.findall(r"\$\{([A-Z_]+)", (FOLDER / "compose.yaml").read_text()))
    lines = [line for line in (FOLDER / ".env.example").read_text().splitlines() if line and not line.startswith("#")]
    example = dict(line.split("=", 1) for line in lines)
    assert set(example) == asked
    assert {name for name, value in example.items() if value} == {"LANDING_FOLDER"}


def test_no_service_that_stays_knows_the_administrators_password() -> None:
    knowing = {name for name, each in SERVICES.items() if "POSTGRES_PASSWORD" in str(each.get("environment"))}
    assert knowing == {"postgres", "airflow-init"}
    assert SERVICES["airflow-init"]["restart"].startswith("on-failure")


def test_what_the_dockerfile_copies_is_there_and_is_sent_to_the_engine() -> None:
    sent = {line[1:] for line in (FOLDER / "Dockerfile.dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = {source for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.M) for source in line.split()[:-1]}
    assert copied == sent
    assert [source for source in copied if not (PROJECT / source).exists()] == []


def test_no_stage_that_runs_a_service_runs_as_root() -> None:
    targets = {service["build"]["target"] for service in SERVICES.values() if "build" in service}
    bodies = re.split(r"^FROM ", DOCKERFILE, flags=re.M)[1:]
    users = {body.splitlines()[0].split(" AS ")[1]: re.findall(r"^USER (\S+)$", body, re.M) for body in bodies}
    assert {target: users[target] for target in targets} == {target: ["lake"] for target in targets}


def stages() -> list[str]:
    return re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.M)


def test_spark_has_as_many_slots_as_its_workers_have_cores() -> None:
    command = SERVICES["spark-worker"]["command"]
    cores = command[command.index("--cores") + 1]
    assert SERVICES["airflow-scheduler"]["environment"]["LAKE_SPARK_SLOTS"] == cores

"""A small declaration for the host's tests: a store, an app that logs in to it, and one with an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gitmesh.core.declaration import (
    AnswerHole,
    AnswersSpec,
    AssignmentSpec,
    ConsumerSpec,
    ContainerSpec,
    Declaration,
    DirectorySpec,
    FileSpec,
    Holed,
    JobSpec,
    LoginHole,
    MountSpec,
    ProvisionSpec,
    PublishSpec,
    SecretHole,
    SecretSpec,
)
from gitmesh.host.fill import SecretValue, Values
from gitmesh.trust.secret import Secret

DATABASE, ADMIN, STATS = "app@athens.database", "store@athens.admin", "site@athens.stats"
PASSWORD = "GMCANARYdatabase/p%ss"
ADMIN_PASSWORD = "GMCANARYadmin"


def secret_file(*pieces: str | SecretHole, owner: str = "1000:1000") -> FileSpec:
    return FileSpec("text", owner, "0400", text=Holed(pieces), secret=True)


STORE = AssignmentSpec(
    as_="store_athens",
    directories={"data": DirectorySpec("/var/lib/mesh/store/data", "70:70", "0700", ("wal",))},
    containers={
        "db": ContainerSpec(
            "docker.io/postgres:17@sha256:1",
            files={"/run/secrets/admin": secret_file(SecretHole(ADMIN), owner="70:70")},
            env={"PGDATA": "/data", "PASSWORD_FILE": "/run/secrets/admin"},
            mounts={"/data": MountSpec("/var/lib/mesh/store/data")},
            publish=(PublishSpec("10.7.0.11", 31004, 5432, "tcp", "mesh"),),
        )
    },
    jobs={"backup": JobSpec("daily", "in", "db", ContainerSpec("", command=("pg_dump", "-Fc")))},
    provides={
        "postgres-database": ProvisionSpec(
            "exec", consumers=(ConsumerSpec(DATABASE, "app_athens", "athens", "10.7.0.11", secret=DATABASE),)
        )
    },
)

APP = AssignmentSpec(
    as_="app_athens",
    directories={"data": DirectorySpec("/var/lib/mesh/app/data", "1000:1000", "0750")},
    containers={
        "web": ContainerSpec(
            "docker.io/app:1@sha256:2",
            reads_as="1000:1000",
            command=("serve", "--port=80"),
            env={"DB_USER": Holed((LoginHole(DATABASE),)), "MODE": "fast"},
            env_file={"DB_URL": Holed(("postgresql://u:", SecretHole(DATABASE, url=True), "@h/d"))},
            files={
                "/run/secrets/password": secret_file(SecretHole(DATABASE)),
                "/etc/app.json": FileSpec(
                    "json",
                    "1000:1000",
                    "0400",
                    tree={"db": {"password": None, "port": 5432}, "a/b": [None]},
                    holes={
                        "/db/password": Holed((SecretHole(DATABASE),)),
                        "/a~1b/0": Holed((LoginHole(DATABASE), "@h")),
                    },
                    secret=True,
                ),
                "/opt/run.sh": FileSpec("from", "0:0", "0555", content="IyEvYmluL3NoCg=="),
            },
            mounts={"/data": MountSpec("/var/lib/mesh/app/data/sub")},
        )
    },
    needs=("store@athens",),
)

SITE = AssignmentSpec(
    as_="site_athens",
    containers={
        "site": ContainerSpec(
            "docker.io/site:1@sha256:3",
            files={
                "/srv/site.yaml": FileSpec(
                    "yaml",
                    "0:0",
                    "0444",
                    tree={"id": None, "label": None},
                    holes={
                        "/id": Holed((AnswerHole("stats@sparta", STATS, "id"),)),
                        "/label": Holed(("site-", AnswerHole("stats@sparta", STATS, "id"))),
                    },
                )
            },
        )
    },
)

DECLARATION = Declaration(
    mesh="0" * 32,
    name="hellas",
    node="athens",
    address="10.7.0.11",
    root="/var/lib/mesh",
    assignments={"app@athens": APP, "site@athens": SITE, "store@athens": STORE},
    secrets={
        DATABASE: SecretSpec(
            "app@athens",
            "password",
            {"type": "string", "minLength": 8},
            "apply+present",
            "start",
            by="store@athens",
            logins=("app_athens_a", "app_athens_b"),
        ),
        ADMIN: SecretSpec("store@athens", "value", {"type": "string"}, "own", "apply"),
    },
    answers={STATS: AnswersSpec("stats@sparta", "sparta", {"id": {"type": "integer", "minimum": 1}})},
)

VALUES = Values(
    {
        DATABASE: SecretValue("a", 1, Secret(PASSWORD)),
        ADMIN: SecretValue("a", 1, Secret(ADMIN_PASSWORD)),
    },
    {STATS: {"id": 7}},
)


def rotated(secret: str, value: str, slot: str = "b", version: int = 2) -> Values:
    """`VALUES` with another version of one secret."""
    return replace(VALUES, secrets={**VALUES.secrets, secret: SecretValue(slot, version, Secret(value))})


def with_container(declaration: Declaration, assignment: str, name: str, **changes: Any) -> Declaration:
    """The declaration with one container changed."""
    spec = declaration.assignments[assignment]
    container = replace(spec.containers[name], **changes)
    return with_assignment(declaration, assignment, containers={**spec.containers, name: container})


def with_assignment(declaration: Declaration, assignment: str, **changes: Any) -> Declaration:
    """The declaration with one assignment changed."""
    spec = replace(declaration.assignments[assignment], **changes)
    return replace(declaration, assignments={**declaration.assignments, assignment: spec})

"""A small mesh repo on disk for the commands' tests: a forge that needs a database, a name and a key."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

FILES = {
    "mesh.yaml": "# ours\nmesh: hellas\nid: 7f0c2b9e41d84a6fb3a1c05d9e2f6a10\n"
    "origin: ssh://git@git.example.org/hellas.git\nmailbox: ssh://git@git.example.org/mail.git\n",
    "nodes/athens.yaml": "address: 10.7.0.11\n",
    "nodes/delphi.yaml": "address: 10.7.0.13\nlabels: [linux]\n",
    "nodes/sparta.yaml": "address: 10.7.0.12\nlabels: [linux]\n",
    "contracts/postgres-database.yaml": """\
contract: postgres-database
about: A PostgreSQL database that its consumer owns.
fields:
  host: {type: string, format: hostname}
  port: {type: integer, minimum: 1, maximum: 65535}
  database: {type: string, maxLength: 63}
  user: {type: string, maxLength: 63}
  password: {type: string, secret: true, minLength: 24, pattern: '[A-Za-z0-9]+'}
credential: {login: user, secret: password, by: vault, rotation: two, check: postgres}
""",
    "contracts/route.yaml": """\
contract: route
about: A public name that reaches a port of the consumer.
unique: [name]
asks:
  upstream: {type: string, pattern: '[a-z0-9.-]+:[0-9]+'}
  name: {type: string, format: hostname, from: operator}
fields:
  url: {type: string, format: uri, derived: 'https://{name}'}
""",
    "modules/gitea/module.yaml": """\
module: gitea
requires:
  database: {module: postgres-database}
  web: {module: route, upstream: '${http:address}'}
  key: {module: secret, takes: never}
  relay: {module: secret, source: operator, optional: true}
  http: {host: port, listens: 3000}
  spare: {module: postgres-database, optional: true, as: spare}
  workers: {operator: {type: integer, minimum: 1}, default: 2}
  title: {operator: {type: string}, default: Git}
containers:
  gitea:
    image: docker.io/gitea/gitea:1.24.6@sha256:…
    env:
      HOST: '${database:host}'
      DB: '${database:database}'
      DB_USER: '${database:user}'
      URL: '${web:url}'
      WORKERS: '${workers:value}'
      TITLE: '${title:value}'
      PASSWORD_FILE: {file: '${database:password}'}
      KEY_FILE: {file: '${key:value}'}
    publish: [http]
""",
    "modules/postgres/module.yaml": """\
module: postgres
seats: [mesh-store]
requires:
  superuser: {module: secret, takes: apply}
  sql: {host: port, listens: 5432}
containers:
  postgres:
    image: docker.io/library/postgres:17.6@sha256:…
    env: {POSTGRES_PASSWORD_FILE: {file: '${superuser:value}'}}
    publish: [sql]
provides:
  postgres-database:
    serves: {host: '${sql:host}', port: '${sql:port}', database: '${consumer:as}'}
    provisioner: {adapter: postgres, at: sql, login: postgres, admin: superuser}
""",
    "modules/caddy/module.yaml": """\
module: caddy
seats: [mesh-edge]
requires:
  https: {host: port, number: 443, listens: 443, reach: public}
containers:
  caddy:
    image: docker.io/library/caddy:2.10@sha256:…
    publish: [https]
provides:
  route: {serves: {}}
""",
    "modules/gitmesh-vault/module.yaml": """\
module: gitmesh-vault
seats: [mesh-vault]
requires:
  store: {host: directory, owner: '0:0', mode: '0700'}
provides:
  secret:
    provisioner: {adapter: vault, at: store}
""",
    "assignments/athens/gitea.yaml": "# ask Ada before moving it\n"
    "values:\n  web.name: git.example.org  # public\n",
    "assignments/delphi/caddy.yaml": "",
    "assignments/delphi/gitmesh-vault.yaml": "holds: [mesh-vault]\n",
    "assignments/sparta/postgres.yaml": "holds: [mesh-store]\n",
}
"""A mesh that resolves."""

SECOND = {"assignments/delphi/postgres.yaml": ""}
"""A second PostgreSQL, which leaves gitea's database to a person."""


def make(folder: Path, files: dict[str, str] = FILES, **more: str) -> Path:
    """The files below `folder`; a file of `more` (`a__b` is a/b.yaml) replaces or joins them."""
    for path, text in {
        **files,
        **{f"{name.replace('__', '/')}.yaml": text for name, text in more.items()},
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def git(folder: Path, *arguments: str) -> str:
    """One git command in `folder`, by nobody in particular."""
    names = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org"}
    names |= {key.replace("AUTHOR", "COMMITTER"): value for key, value in names.items()}
    environment = {**os.environ, **names, "GIT_CONFIG_GLOBAL": os.devnull}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True, env=environment
    )
    return done.stdout.strip()


def commit(folder: Path) -> str:
    """Everything in `folder` as one commit."""
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "a commit")
    return git(folder, "rev-parse", "HEAD")


def deployed(folder: Path, record: object, ref: str = "refs/remotes/origin/deploy") -> str:
    """A deploy branch that was fetched, holding `record`."""
    text = record if isinstance(record, str) else json.dumps(record)
    blob = subprocess.run(
        ["git", "-C", str(folder), "hash-object", "-w", "--stdin"],
        input=text, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    tree = subprocess.run(
        ["git", "-C", str(folder), "mktree"],
        input=f"100644 blob {blob}\trecord.json\n", capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    tip = git(folder, "commit-tree", tree, "-m", "deploy 1")
    git(folder, "update-ref", ref, tip)
    return tip

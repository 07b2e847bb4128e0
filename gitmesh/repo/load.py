"""One commit's files into the nouns of a mesh, with everything they are refused for (DESIGN §3).

Every file is read, held against its schema and made a noun on its own; then what they say of each other
is checked. What stands on a refused file goes to `Mesh.broken` and is silent: one mistake, one refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gitmesh.core.checking import may_say
from gitmesh.core.contract_builtin import SECRET
from gitmesh.core.contract_parse import parse_contract
from gitmesh.core.definition import check_module
from gitmesh.core.formats import FORMATS
from gitmesh.core.model import Assignment, Contract, Json, Keys, Layers, Mesh, Module, Node
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related
from gitmesh.repo import document
from gitmesh.repo.load_acts import check_rotations, read_handed
from gitmesh.repo.load_assignments import Spread, check_assignments, check_layers, expand, read_assignment
from gitmesh.repo.load_module import read_module
from gitmesh.repo.load_paths import sort

SHIPPED_SEATS: Mapping[str, str | None] = {
    "mesh-vault": "secret",
    "mesh-store": "postgres-database",
    "mesh-broker": "amqp-vhost",
    "mesh-git": "git-account",
    "mesh-edge": "route",
    "mesh-controller": None,
}
"""The seats of every mesh and what each delivers; a foundation seat delivers nothing."""

_ACTS = ("rotations", "purges", "reveals", "catalogue")


def load(files: Mapping[str, bytes]) -> tuple[Mesh, list[Refusal]]:
    """The mesh that `files` (a commit's, by path) describe, and everything they are refused for.

    What was refused is named in `Mesh.broken` and left out, but for assignments: one whose file was refused
    stands there bare, so that what it holds is not thought free.
    """
    loading = _Loading(files)
    return loading.mesh(), loading.refusals


class _Loading:
    """Reads one commit, collecting refusals and what they break."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = files
        self.refusals: list[Refusal] = []
        self.broken: set[str] = set()
        self.paths, refused = sort(files)
        self.refusals += refused

    def refuse(
        self, code: Code, subject: str, message: str, at: At, *answers: str, related: tuple[Related, ...] = ()
    ) -> None:
        """Add a refusal."""
        said = tuple(Answer(each) for each in answers)
        self.refusals.append(Refusal(code, subject, message, at, related=related, answers=said))

    def read(self, kind: str, file: str) -> tuple[Json, bool]:
        """A file's value (an empty file is an empty map), and whether it fits its schema."""
        value, refused = document.read(file, self.files[file])
        if refused:
            self.refusals += refused
            return None, False
        value = {} if value is None and kind != "purges" else value
        wrong = document.check(kind, file, value)
        self.refusals += wrong
        return value, not wrong

    def mesh(self) -> Mesh:
        """The mesh."""
        said = self._mesh_file()
        seats = self._seats(said)
        contracts = self._contracts()
        modules = self._modules(contracts, seats)
        nodes = self._nodes()
        assignments = self._assignments(modules, nodes)
        values = self._values(modules, contracts)
        checked = (each for each in assignments.values() if each.id not in self.broken)
        self.refusals += check_assignments(checked, modules, contracts)
        rotations = self._acts()
        self.refusals += check_rotations(rotations, assignments, modules)
        handed, refused = read_handed(self.paths.handed, self.files)
        self.refusals += refused
        self._check_seat_contracts(said, contracts)
        self._check_choose(said.get("choose", {}), contracts, assignments, modules)
        deploy = said.get("deploy", {})
        return Mesh(
            name=said.get("mesh", ""),
            id=said.get("id", ""),
            at=At("mesh.yaml"),
            domain=said.get("domain"),
            timezone=said.get("timezone", "UTC"),
            origin=said.get("origin", ""),
            mailbox=said.get("mailbox", ""),
            branch=deploy.get("branch", "deploy"),
            keep=deploy.get("keep", 20),
            seats=seats,
            choose=said.get("choose", {}),
            allow_drop=tuple(said.get("allow", {}).get("drop", ())),
            contracts=contracts,
            modules=modules,
            nodes=nodes,
            assignments=assignments,
            values=values,
            handed=handed,
            rotations={key: each for key, each in rotations.items() if key != "abandon"},
            abandon=tuple(rotations.get("abandon", ())),
            broken=frozenset(self.broken),
        )

    # --- the mesh's own file ---------------------------------------------------------------------------

    def _mesh_file(self) -> Mapping[str, Json]:
        if "mesh.yaml" not in self.files:
            said = "a mesh repo has a file mesh.yaml at its top, and this one has none"
            self.refuse(Code.FILE_MISSING, "mesh.yaml", said, At("mesh.yaml"), "make one with `gitmesh init`")
            return {}
        value, fits = self.read("mesh", "mesh.yaml")
        return value if fits else {}

    def _seats(self, said: Mapping[str, Json]) -> dict[str, str | None]:
        seats = dict(SHIPPED_SEATS)
        for name, contract in said.get("seats", {}).items():
            if name in SHIPPED_SEATS:
                self.refuse(
                    Code.SCHEMA,
                    "mesh.yaml",
                    f"`{name}` is a seat of every mesh; what it delivers is fixed",
                    At("mesh.yaml", ("seats", name)),
                    "remove it, or give yours another name",
                )
            else:
                seats[name] = contract
        return seats

    def _check_seat_contracts(self, said: Mapping[str, Json], contracts: Mapping[str, Contract]) -> None:
        for name, contract in said.get("seats", {}).items():
            if (
                contract is not None
                and contract not in contracts
                and f"contracts/{contract}" not in self.broken
            ):
                self.refuse(
                    Code.CONTRACT_UNKNOWN,
                    "mesh.yaml",
                    f"the seat `{name}` delivers `{contract}`, and there is no such contract",
                    At("mesh.yaml", ("seats", name)),
                    may_say(contract, contracts, "contract"),
                )

    def _check_choose(
        self,
        choose: Mapping[str, str],
        contracts: Mapping[str, Contract],
        assignments: Mapping[str, Assignment],
        modules: Mapping[str, Module],
    ) -> None:
        for contract, provider in choose.items():
            at = At("mesh.yaml", ("choose", contract))
            if contract not in contracts:
                if f"contracts/{contract}" not in self.broken:
                    said, answer = (
                        f"there is no contract `{contract}`",
                        may_say(contract, contracts, "contract"),
                    )
                    self.refuse(Code.CONTRACT_UNKNOWN, "mesh.yaml", said, at, answer)
                continue
            module = modules.get(provider.partition("@")[0])
            silent = provider in assignments and module is None
            if not silent and (
                provider not in assignments or module is None or contract not in module.provides
            ):
                able = [
                    each.id
                    for each in assignments.values()
                    if each.module in modules and contract in modules[each.module].provides
                ]
                self.refuse(
                    Code.PIN_BAD,
                    "mesh.yaml",
                    f"`{provider}` is chosen, and is no assignment that provides `{contract}`",
                    at,
                    may_say(provider, able, f"provider of `{contract}`"),
                )

    # --- contracts and modules -------------------------------------------------------------------------

    def _contracts(self) -> dict[str, Contract]:
        contracts = {}
        for name, files in self.paths.contracts.items():
            file = self._only("contract", name, files)
            value, fits = self.read("contract", file)
            contract = None
            if fits and self._same("contract", name, file, value):
                contract, refused = parse_contract(file, value)
                self.refusals += refused
            if contract is None:
                self.broken.add(f"contracts/{name}")
            else:
                contracts[name] = contract
        if "secret" not in self.paths.contracts:
            contracts["secret"] = SECRET
        return contracts

    def _only(self, kind: str, name: str, files: list[str]) -> str:
        """The one file of a contract or module; a second is refused (A6)."""
        for other in files[1:]:
            self.broken.add(f"{kind}s/{name}")
            self.refuse(
                Code.FILE_NAME,
                f"{kind} {name}",
                f"there are two definitions of the {kind} `{name}`",
                At(other),
                "remove one of the two",
                related=(Related(At(files[0]), "the other one"),),
            )
        return files[0]

    def _same(self, kind: str, name: str, file: str, value: Mapping[str, Json]) -> bool:
        """Whether a file says the name that its place gives it."""
        if value[kind] == name:
            return True
        self.refuse(
            Code.SCHEMA,
            file,
            f"it calls itself `{value[kind]}`, and its place calls it `{name}`",
            At(file, (kind,), value=True),
            f"say `{kind}: {name}`, or move the file",
        )
        return False

    def _modules(
        self, contracts: Mapping[str, Contract], seats: Mapping[str, str | None]
    ) -> dict[str, Module]:
        modules = {}
        broken = {each.removeprefix("contracts/") for each in self.broken if each.startswith("contracts/")}
        for name, files in self.paths.modules.items():
            file = self._only("module", name, files)
            value, fits = self.read("module", file)
            if fits and self._same("module", name, file, value):
                beside = self.paths.beside.get(file.removesuffix("/module.yaml"), {})
                module, refused = read_module(file, value, beside)
                refused += check_module(module, contracts, seats, broken)
                self.refusals += refused
                if not refused:
                    modules[name] = module
            if name not in modules:
                self.broken.add(f"modules/{name}")
        return modules

    # --- nodes -----------------------------------------------------------------------------------------

    def _nodes(self) -> dict[str, Node]:
        nodes = {}
        for name, file in self.paths.nodes.items():
            value, fits = self.read("node", file)
            if fits and self._check_node(name, file, value):
                nodes[name] = _node(name, file, value)
            else:
                self.broken.add(f"nodes/{name}")
        return nodes

    def _check_node(self, name: str, file: str, value: Mapping[str, Json]) -> bool:
        before = len(self.refusals)
        for key in ("address", "public"):
            if key in value and not any(
                FORMATS[each][1](value[key]) for each in ("ipv4", "ipv6", "hostname")
            ):
                said = "expected an IP address or a host name"
                self.refuse(
                    Code.SCHEMA, f"node {name}", said, At(file, (key,), value=True), "such as 10.7.0.11"
                )
        if {"..", "."} & set(value.get("root", "/").split("/")):
            said = "expected an absolute path without `.` and `..`"
            self.refuse(Code.SCHEMA, f"node {name}", said, At(file, ("root",)), "such as /var/lib/mesh")
        ports = value.get("ports")
        if ports is not None and ports["from"] > ports["to"]:
            said = "the range of ports ends before it begins"
            self.refuse(
                Code.SCHEMA, f"node {name}", said, At(file, ("ports",)), "such as {from: 31000, to: 31999}"
            )
        return len(self.refusals) == before

    # --- assignments -----------------------------------------------------------------------------------

    def _assignments(self, modules: Mapping[str, Module], nodes: Mapping[str, Node]) -> dict[str, Assignment]:
        assignments: dict[str, Assignment] = {}
        unknown: dict[tuple[Code, str], list[Assignment]] = {}
        for module, node, file in self.paths.assignments:
            value, fits = self.read("assignment", file)
            assignment = read_assignment(module, node, file, value if fits else _salvaged(value))
            assignments[assignment.id] = assignment
            if not fits:
                self.broken.add(assignment.id)
            if node not in nodes and f"nodes/{node}" not in self.broken:
                unknown.setdefault((Code.NODE_UNKNOWN, node), []).append(assignment)
            if module not in modules and f"modules/{module}" not in self.broken:
                unknown.setdefault((Code.MODULE_UNKNOWN, module), []).append(assignment)
        for (code, name), which in unknown.items():
            self._unknown(code, name, which[0].id, which[0].at, len(which), modules, nodes)
        made, twice = expand(self._spreads(modules, nodes), nodes, assignments, self.refusals)
        assignments |= {each.id: each for each in made}
        self.broken |= twice
        return assignments

    def _unknown(
        self,
        code: Code,
        name: str,
        subject: str,
        at: At,
        count: int,
        modules: Mapping[str, Module],
        nodes: Mapping[str, Node],
    ) -> None:
        kind, known = ("node", tuple(nodes)) if code is Code.NODE_UNKNOWN else ("module", tuple(modules))
        place = f"nodes/{name}.yaml" if code is Code.NODE_UNKNOWN else f"modules/{name}/module.yaml"
        more = f"; {count - 1} more assignments name it" if count > 1 else ""
        said = f"there is no {kind} `{name}`{more}"
        self.refuse(code, subject, said, at, may_say(name, known, kind), f"or add {place}")

    def _spreads(self, modules: Mapping[str, Module], nodes: Mapping[str, Node]) -> list[Spread]:
        spreads = []
        for name, file in self.paths.spreads.items():
            value, fits = self.read("spread", file)
            if not fits:
                self.broken.add(f"spreads/{name}")
                continue
            module = value["module"]
            if module not in modules and f"modules/{module}" not in self.broken:
                at = At(file, ("module",), value=True)
                self._unknown(Code.MODULE_UNKNOWN, module, f"spread {name}", at, 1, modules, nodes)
            spreads.append(Spread(name, file, value))
        return spreads

    def _values(self, modules: Mapping[str, Module], contracts: Mapping[str, Contract]) -> dict[str, Layers]:
        layers = {}
        for name, file in self.paths.values.items():
            value, fits = self.read("values", file)
            if not fits:
                self.broken |= {f"values/{name}"}
                continue
            layers[name] = Layers(At(file), value.get("mesh", {}), value.get("labels", {}))
            if name in modules:
                self.refusals += check_layers(layers[name], modules[name], contracts)
            elif f"modules/{name}" not in self.broken:
                self._unknown(Code.MODULE_UNKNOWN, name, f"values/{name}", At(file), 1, modules, {})
        return layers

    # --- acts ------------------------------------------------------------------------------------------

    def _acts(self) -> Mapping[str, Any]:
        """What rotations.yaml says; the other files of acts are held against their schemas alone."""
        rotations: Mapping[str, Any] = {}
        for kind in _ACTS:
            file = f"{kind}.yaml"
            if file in self.files:
                value, fits = self.read(kind, file)
                rotations = value if fits and kind == "rotations" else rotations
        return rotations


def _salvaged(value: Json) -> Mapping[str, Json]:
    """Of an assignment's file that was refused, the seats it holds: they are not free."""
    holds = value.get("holds") if isinstance(value, dict) else None
    whole = isinstance(holds, list) and all(isinstance(each, str) for each in holds)
    return {"holds": holds} if whole else {}


def _node(name: str, file: str, said: Mapping[str, Json]) -> Node:
    ports, keys, state = said.get("ports", {}), said.get("keys"), said.get("state", "active")
    return Node(
        name=name,
        at=At(file),
        address=said["address"],
        public=said.get("public"),
        root=said.get("root", "/var/lib/mesh"),
        first=ports.get("from", 31000),
        last=ports.get("to", 31999),
        reserved=frozenset(ports.get("reserved", ())),
        labels=tuple(said.get("labels", ())),
        keys=None if keys is None else Keys(keys["sign"], keys["seal"], keys["epoch"]),
        state=state if isinstance(state, str) else "paused",
    )

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
from gitmesh.core.definition_unused import check_unread, consumed_fields
from gitmesh.core.model import Assignment, Contract, Json, Layers, Mesh, Module, Node
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related
from gitmesh.repo import document
from gitmesh.repo.cache import Cache
from gitmesh.repo.foreign import foreign
from gitmesh.repo.load_acts import check_reveals, check_rotations, read_handed
from gitmesh.repo.load_assignments import Spread, check_assignments, check_layers, expand, read_assignment
from gitmesh.repo.load_catalogue import check_pins, check_seats, seats_in
from gitmesh.repo.load_mesh import (
    Beside,
    check_alone,
    check_beside,
    notify_of,
    registries_of,
    rollout_of,
    seats_of,
)
from gitmesh.repo.load_module import read_module
from gitmesh.repo.load_nodes import check_addresses_differ, check_keys_differ, check_node, read_node
from gitmesh.repo.load_paths import sort
from gitmesh.repo.load_retired import named_retired

_ACTS = ("rotations", "purges", "reveals", "catalogue")


def load(files: Mapping[str, bytes], cache: Cache | None = None) -> tuple[Mesh, list[Refusal]]:
    """The mesh that `files` (a commit's, by path) describe, and everything they are refused for.

    What was refused is named in `Mesh.broken` and left out, but for assignments: one whose file was refused
    stands there bare, so that what it holds is not thought free.
    """
    loading = _Loading(files, cache or Cache())
    return loading.mesh(), loading.refusals


class _Loading:
    """Reads one commit, collecting refusals and what they break."""

    def __init__(self, files: Mapping[str, bytes], cache: Cache) -> None:
        self.files = files
        self.cache = cache
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
        blob = self.files[file]
        known, value = self.cache.find(kind, blob)
        if known:
            return value, True
        value, refused = document.read(file, blob)
        if refused:
            self.refusals += refused
            return None, False
        value = {} if value is None and kind != "purges" else value
        wrong = document.check(kind, file, value)
        self.refusals += named_retired(wrong, value) if kind == "module" else wrong
        if not wrong:
            self.cache.add(kind, blob, value)
        return value, not wrong

    def mesh(self) -> Mesh:
        """The mesh."""
        said = self._mesh_file()
        known = seats_of(said)
        added, refused = seats_in(self.files, known)
        self.refusals += refused
        seats = {**added.delivers, **known}
        self.refusals += check_alone(said)
        contracts = self._contracts()
        self.refusals += check_seats(added, contracts, self.broken)
        modules = self._modules(contracts, seats)
        nodes = self._nodes()
        assignments = self._assignments(modules, nodes)
        values = self._values(modules, contracts, assignments, nodes)
        checked = (each for each in assignments.values() if each.id not in self.broken)
        self.refusals += check_assignments(checked, modules, contracts)
        acts = {kind: self._act(kind) for kind in _ACTS}
        rotations, reveals = acts["rotations"], acts["reveals"]
        if "catalogue.yaml" not in self.broken:
            self.refusals += check_pins(self.files, acts["catalogue"])
        self.refusals += check_rotations(rotations, assignments, modules)
        self.refusals += check_reveals(reveals, assignments, modules)
        handed, refused = read_handed(self.paths.handed, self.files)
        self.refusals += refused
        beside = Beside(contracts, modules, nodes, assignments, handed, self.broken)
        self.refusals += check_beside(said, beside)
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
            registries=registries_of(said),
            rollout=rollout_of(said),
            notify=notify_of(said),
            gitmesh=said.get("gitmesh"),
            allow_drop=tuple(said.get("allow", {}).get("drop", ())),
            contracts=contracts,
            modules=modules,
            nodes=nodes,
            assignments=assignments,
            values=values,
            handed=handed,
            rotations={key: each for key, each in rotations.items() if key != "abandon"},
            abandon=tuple(rotations.get("abandon", ())),
            purges=tuple(acts["purges"]),
            reveals=reveals,
            broken=frozenset(self.broken),
        )

    # --- the mesh's own file ---------------------------------------------------------------------------

    def _mesh_file(self) -> Mapping[str, Json]:
        if "mesh.yaml" not in self.files:
            said = "a mesh repo has a file mesh.yaml at its top, and this one has none"
            self.refuse(
                Code.FILE_MISSING,
                "mesh.yaml",
                said,
                At("mesh.yaml"),
                "begin with gitmesh's mesh-repo-template",
            )
            return {}
        value, fits = self.read("mesh", "mesh.yaml")
        return value if fits else _salvaged_mesh(value)

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
        """The one file of a contract or module, the mesh's own where it has one; a second is refused (A6)."""
        files = sorted(files, key=lambda each: each.startswith("catalogue/"))
        for other in files[1:]:
            self.broken.add(f"{kind}s/{name}")
            self.refuse(
                Code.DEFINED_TWICE,
                f"{kind} {name}",
                f"there are two definitions of the {kind} `{name}`",
                At(other),
                "remove one of the two; what is vendored, in the repository it comes from",
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
                folder = file.removesuffix("/module.yaml")
                beside = self.paths.beside.get(folder, {})
                module, refused = read_module(file, value, beside)
                refused += check_module(module, contracts, seats, broken)
                sources = (foreign(f"{folder}/{path}", blob) for path, blob in beside.items())
                refused += [each for each in sources if each is not None]
                self.refusals += refused
                if not refused:
                    modules[name] = module
            if name not in modules:
                self.broken.add(f"modules/{name}")
        consumed = consumed_fields(modules.values())
        for module in modules.values():
            self.refusals += check_unread(module, contracts, consumed)
        return modules

    # --- nodes -----------------------------------------------------------------------------------------

    def _nodes(self) -> dict[str, Node]:
        nodes = {}
        for name, file in self.paths.nodes.items():
            value, fits = self.read("node", file)
            wrong = list(check_node(name, file, value)) if fits else []
            self.refusals += wrong
            if fits and not wrong:
                nodes[name] = read_node(name, file, value)
            else:
                self.broken.add(f"nodes/{name}")
        self.refusals += check_addresses_differ(nodes.values())
        self.refusals += check_keys_differ(nodes.values())
        return nodes

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

    def _values(
        self,
        modules: Mapping[str, Module],
        contracts: Mapping[str, Contract],
        assignments: Mapping[str, Assignment],
        nodes: Mapping[str, Node],
    ) -> dict[str, Layers]:
        layers = {}
        for name, file in self.paths.values.items():
            value, fits = self.read("values", file)
            if not fits:
                self.broken |= {f"values/{name}"}
                continue
            layers[name] = Layers(At(file), value.get("mesh", {}), value.get("labels", {}))
            if name in modules:
                mine = [each for each in assignments.values() if each.module == name]
                self.refusals += check_layers(layers[name], modules[name], contracts, mine, nodes)
            elif f"modules/{name}" not in self.broken:
                self._unknown(Code.MODULE_UNKNOWN, name, f"values/{name}", At(file), 1, modules, {})
        return layers

    # --- acts ------------------------------------------------------------------------------------------

    def _act(self, kind: str) -> Any:
        """What a file of acts says, held against its schema; nothing where it is absent or refused."""
        file = f"{kind}.yaml"
        value, fits = self.read(kind, file) if file in self.files else ({}, True)
        if not fits:
            self.broken.add(file)
        return value if fits else {}


def _salvaged_mesh(value: Json) -> Mapping[str, Json]:
    """Of a mesh.yaml that was refused, its seats: a module that declares one makes no second mistake."""
    seats = value.get("seats") if isinstance(value, dict) else None
    if not isinstance(seats, dict) or not all(isinstance(each, str | None) for each in seats.values()):
        return {}
    return {"seats": seats}


def _salvaged(value: Json) -> Mapping[str, Json]:
    """Of an assignment's file that was refused, the seats it holds: they are not free."""
    holds = value.get("holds") if isinstance(value, dict) else None
    whole = isinstance(holds, list) and all(isinstance(each, str) for each in holds)
    return {"holds": holds} if whole else {}

"""Vendored catalogues: the seats they add, and each folder `catalogue/<name>/` held against its pin (G15)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from gitmesh.core.checking import may_say
from gitmesh.core.model import Contract, Json
from gitmesh.core.refusal import Answer, At, Code, Refusal, Related
from gitmesh.repo import document
from gitmesh.repo.load_mesh import check_remote

FILE = "catalogue.yaml"
SEATS = "seats.yaml"


def vendored(files: Mapping[str, bytes]) -> dict[str, dict[str, bytes]]:
    """By catalogue, its files by their path in it."""
    found: dict[str, dict[str, bytes]] = {}
    for path, blob in files.items():
        top, _, below = path.partition("/")
        name, within, inside = below.partition("/")
        if top == "catalogue" and within:
            found.setdefault(name, {})[inside] = blob
    return found


def digest(files: Mapping[str, bytes]) -> str:
    """The sha256 of a catalogue's canonical listing: for each file, in the order of its path's bytes, a line
    as `sha256sum` writes it."""
    lines = (
        f"{hashlib.sha256(files[path]).hexdigest()}  {path}\n".encode()
        for path in sorted(files, key=str.encode)
    )
    return hashlib.sha256(b"".join(lines)).hexdigest()


def check_pins(files: Mapping[str, bytes], pins: Mapping[str, Mapping[str, Json]]) -> Iterator[Refusal]:
    """Refuse a folder without a pin, a pin without its folder, and a folder that is not what its pin says."""
    folders = vendored(files)
    for name, pin in pins.items():
        yield from check_remote(pin["from"], At(FILE, (name, "from"), value=True))
    for name, held in folders.items():
        if name not in pins:
            yield _unpinned(name)
        elif digest(held) != pins[name]["sha256"]:
            yield _changed(name)
    for name in pins:
        if name not in folders:
            yield _missing(name)


def _unpinned(name: str) -> Refusal:
    return Refusal(
        Code.CATALOGUE_UNPINNED,
        f"catalogue {name}",
        f"{FILE} does not say where catalogue/{name} is from, nor at which commit",
        At(FILE),
        answers=(
            Answer("vendor it", f"gitmesh catalogue vendor {name} REMOTE@COMMIT"),
            Answer(f"move what is your own to modules/ and contracts/, or remove catalogue/{name}"),
        ),
    )


def _changed(name: str) -> Refusal:
    return Refusal(
        Code.CATALOGUE_CHANGED,
        f"catalogue {name}",
        f"catalogue/{name} does not hold what it is pinned to: something there was edited, added or removed",
        At(FILE, (name, "sha256"), value=True),
        answers=(
            Answer(
                "have back what is pinned; what differs is shown first",
                f"gitmesh catalogue update {name} --pinned",
            ),
            Answer(
                "make the change where the catalogue is from, and move the pin",
                f"gitmesh catalogue update {name}",
            ),
        ),
    )


def _missing(name: str) -> Refusal:
    return Refusal(
        Code.CATALOGUE_MISSING,
        f"catalogue {name}",
        f"it is pinned, and there is nothing in catalogue/{name}",
        At(FILE, (name,)),
        answers=(
            Answer("fetch what is pinned", f"gitmesh catalogue update {name} --pinned"),
            Answer("or remove the pin"),
        ),
    )


@dataclass(frozen=True, slots=True)
class Seats:
    """What the mesh's own `seats.yaml` and those of its catalogues add: each seat's contract, and where."""

    delivers: Mapping[str, str]
    places: Mapping[str, At]


def seats_in(files: Mapping[str, bytes], known: Mapping[str, str | None]) -> tuple[Seats, list[Refusal]]:
    """The seats that are added to those `known`, and what is wrong there: a seat has one meaning."""
    delivers: dict[str, str] = {}
    places: dict[str, At] = {}
    refusals: list[Refusal] = []
    for file in sorted(each for each in files if _is_seats(each)):
        value, wrong = document.read(file, files[file])
        wrong = wrong or document.check("seats", file, value)
        refusals += wrong
        for name, contract in (value or {}).items() if not wrong else ():
            at = At(file, (name,))
            if {**delivers, **known}.get(name, contract) != contract:
                refusals.append(_twice(name, contract, at, places.get(name)))
            elif name not in known:
                delivers[name] = contract
                places.setdefault(name, at)
    return Seats(delivers, places), refusals


def check_seats(seats: Seats, contracts: Mapping[str, Contract], broken: Set[str]) -> Iterator[Refusal]:
    """Refuse a seat whose contract there is not."""
    for name, contract in seats.delivers.items():
        if contract not in contracts and f"contracts/{contract}" not in broken:
            yield Refusal(
                Code.CONTRACT_UNKNOWN,
                f"seat {name}",
                f"it delivers `{contract}`, and there is no such contract",
                seats.places[name],
                answers=(Answer(may_say(contract, contracts, "contract")),),
            )


def _is_seats(path: str) -> bool:
    parts = path.split("/")
    return parts[-1] == SEATS and (len(parts) == 1 or (parts[0] == "catalogue" and len(parts) == 3))


def _twice(name: str, contract: str, at: At, first: At | None) -> Refusal:
    return Refusal(
        Code.DEFINED_TWICE,
        f"seat {name}",
        f"it delivers `{contract}` here, and something else to the rest of the mesh",
        at,
        related=() if first is None else (Related(first, "the other one"),),
        answers=(Answer("a seat has one meaning: remove it here, or call it something else"),),
    )

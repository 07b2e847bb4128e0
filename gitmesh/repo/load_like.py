"""What a container or a job takes over from the container that it is `like` (FORMATS "Containers")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gitmesh.core.model import Container, Json, When
from gitmesh.core.refusal import At

Keys = tuple[str | int, ...]


def merged(
    base: Container, own: Container, said_of_base: Mapping[str, Json], said: Mapping[str, Json]
) -> Container:
    """`own` with what it takes over from `base`: maps merge, the rest replaces; publish and health stay.

    Both `said` are what stands in the file for each of the two."""
    when = {name: replace(each, publish=()) for name, each in base.when.items()}
    for name, each in own.when.items():
        when[name] = _both(when[name], each) if name in when else each
    plain = dict(base.plain)
    for key, value in own.plain.items():
        both_maps = isinstance(value, dict) and isinstance(plain.get(key), dict)
        plain[key] = {**plain[key], **value} if both_maps else value
    return replace(
        own,
        image=own.image or base.image,
        entrypoint=own.entrypoint if "entrypoint" in said else base.entrypoint,
        command=own.command if "command" in said else base.command,
        env={**base.env, **own.env},
        env_from=own.env_from or base.env_from,
        env_file={**base.env_file, **own.env_file},
        env_file_reason=own.env_file_reason or base.env_file_reason,
        files={**base.files, **own.files},
        mounts={**base.mounts, **own.mounts},
        hostname=base.hostname if own.hostname is None else own.hostname,
        user=own.user or base.user,
        reads_as=own.reads_as or base.reads_as,
        image_paths=own.image_paths if "image-paths" in said else base.image_paths,
        plain=plain,
        when=when,
        written={
            **(base.written or dict(_written(said_of_base, base.at))),
            **dict(_written(said, own.at)),
        },
    )


def _written(said: Mapping[str, Json], at: At, above: Keys = ()) -> Iterator[tuple[Keys, At]]:
    """Every key of the maps in `said`, as the keys that lead to it, and its place."""
    for key, value in said.items():
        yield (*above, key), at.child(key)
        if isinstance(value, Mapping):
            yield from _written(value, at.child(key), (*above, key))


def _both(base: When, own: When) -> When:
    return When(
        env={**base.env, **own.env},
        env_file={**base.env_file, **own.env_file},
        files={**base.files, **own.files},
        mounts={**base.mounts, **own.mounts},
        publish=own.publish,
    )

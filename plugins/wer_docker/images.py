"""Images: a base with Python, and on it a spec's modules. Named by content, built once."""

from __future__ import annotations

import contextlib
import io
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from wer.errors import SandboxError
from wer.records import SandboxSpec, content_hash
from wer_docker import daemon, hostpython

if TYPE_CHECKING:
    from docker import DockerClient

MODULES = "/opt/wer"
# No site-packages and no working directory on the module path, which an episode may read.
_SERVE = ("-S", "-P", "-m", "wer_sandbox")
_KNOCK_S = 5.0
_PULL_S = 600
_BUILD_S = 300
# The wheels were fetched for this interpreter, so the image has the same version.
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_OFFICIAL = f"python:{_PYTHON}-slim"


def build(client: DockerClient, spec: SandboxSpec, folders: Sequence[Path]) -> str:
    """Give the tag of the spec's image, built unless it is there.

    Args:
        folders: Named by content; they become the module path.

    Raises:
        SandboxError: With ``cause="start"`` and the end of the build's log.
    """
    from docker.errors import APIError, BuildError, ImageNotFound

    name = content_hash([_PYTHON, _SERVE, [folder.name for folder in folders]])
    tag = f"wer-sandbox/{spec.name.lower()}:{name}"
    with contextlib.suppress(ImageNotFound):
        client.images.get(tag)
        return tag
    try:
        with tempfile.TemporaryFile() as context:
            _write_context(context, _base(client), folders)
            context.seek(0)
            client.images.build(
                fileobj=context, custom_context=True, tag=tag, rm=True, forcerm=True, timeout=_BUILD_S
            )
    except BuildError as error:
        log = "".join(str(line.get("stream", line.get("error", ""))) for line in error.build_log)
        raise SandboxError(
            f"the image of {spec.name!r} cannot be built: {error}", cause="start", stderr_tail=log[-4000:]
        ) from error
    except APIError as error:
        raise SandboxError(f"the image of {spec.name!r} cannot be built: {error}", cause="start") from error
    return tag


def _base(client: DockerClient) -> str:
    """The official image where it is or can be had; else one made from this machine's Python."""
    from docker.errors import DockerException, ImageNotFound

    with contextlib.suppress(ImageNotFound):
        client.images.get(_OFFICIAL)
        return _OFFICIAL
    try:
        with contextlib.closing(daemon.connect(_KNOCK_S)) as knocking:
            knocking.images.get_registry_data(_OFFICIAL)
        with contextlib.closing(daemon.connect(_PULL_S)) as pulling:
            pulling.images.pull(_OFFICIAL)
    except (DockerException, OSError):  # no registry: slower to make, and just as good
        return base_from_this_machine(client)
    return _OFFICIAL


def base_from_this_machine(client: DockerClient) -> str:
    """Give the tag of an image with this machine's Python, made unless it is there."""
    from docker.errors import ImageNotFound

    name = hostpython.identity()
    tag = f"wer-sandbox/host-python:{name}"
    with contextlib.suppress(ImageNotFound):
        client.images.get(tag)
        return tag
    settings = [f"ENV LD_LIBRARY_PATH={hostpython.library_path()}"]
    with tempfile.NamedTemporaryFile(suffix=".tar") as archive:
        hostpython.write(archive)
        archive.flush()
        client.api.import_image_from_file(
            archive.name, repository=tag.split(":")[0], tag=name, changes=settings
        )
    return tag


def _write_context(context: IO[bytes], base: str, folders: Sequence[Path]) -> None:
    official = base == _OFFICIAL
    python = "python3" if official else str(hostpython.interpreter())
    start = ", ".join(f'"{word}"' for word in (python, *_SERVE))
    lines = [
        f"FROM {base}",
        *(f"COPY {folder.name} {MODULES}/{folder.name}" for folder in folders),
        f"ENV PYTHONPATH={':'.join(f'{MODULES}/{folder.name}' for folder in folders)}",
        f"ENTRYPOINT [{start}]",
    ]
    recipe = "\n".join(lines).encode()
    with tarfile.open(fileobj=context, mode="w") as tar:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(recipe)
        tar.addfile(entry, io.BytesIO(recipe))
        for folder in folders:
            tar.add(folder, arcname=folder.name, filter=_readable)


def _readable(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Root's, and for everybody to read: the cache is private, the container's user is nobody."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry

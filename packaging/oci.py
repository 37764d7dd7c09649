#!/usr/bin/env python3
"""Pack the trees of an image into one tar in the OCI image layout, the same bytes for the same trees.

usage: oci.py TREES CONTAINERFILE VERSION OUT.tar      (TREES/amd64 and TREES/arm64 are roots of images)
The time of what is packed is SOURCE_DATE_EPOCH. Its settings are those of the Containerfile: ENV, VOLUME, WORKDIR and
ENTRYPOINT.
"""

import gzip
import hashlib
import io
import json
import os
import re
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path

TIME = int(os.environ["SOURCE_DATE_EPOCH"])
KIND = "application/vnd.oci.image."


def add(tar: tarfile.TarFile, name: str, data: bytes | None, mode: int) -> None:
    """Add a file, or a directory without data, that belongs to root."""
    entry = tarfile.TarInfo(name)
    entry.mtime, entry.mode = TIME, mode
    if data is None:
        entry.type = tarfile.DIRTYPE
    else:
        entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data) if data is not None else None)


def layer_of(tree: Path) -> bytes:
    """Return a tree as a tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(tree.rglob("*")):
            data = None if path.is_dir() else path.read_bytes()
            add(tar, str(path.relative_to(tree)), data, path.stat().st_mode & 0o7777)
    return out.getvalue()


def settings(containerfile: str) -> dict[str, object]:
    """Return the configuration of a container."""
    words = dict(re.findall(r"^(ENV|VOLUME|WORKDIR|ENTRYPOINT) (.*)$", containerfile, re.MULTILINE))
    return {
        "Env": ["PATH=/usr/bin", *words["ENV"].split()],
        "Entrypoint": json.loads(words["ENTRYPOINT"]),
        "Volumes": {words["VOLUME"]: {}},
        "WorkingDir": words["WORKDIR"],
    }


def main(trees: Path, containerfile: Path, version: str, out: Path) -> None:
    """Write the layout: blobs named by their hash, and an index of the machines' manifests."""
    blobs: dict[str, bytes] = {}

    def blob(kind: str, data: bytes) -> dict[str, object]:
        name = hashlib.sha256(data).hexdigest()
        blobs[name] = data
        return {"mediaType": KIND + kind, "digest": f"sha256:{name}", "size": len(data)}

    manifests = []
    for tree in sorted(path for path in trees.iterdir() if path.is_dir()):
        layer = layer_of(tree)
        config = {
            "created": datetime.fromtimestamp(TIME, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "architecture": tree.name,
            "os": "linux",
            "config": settings(containerfile.read_text()),
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": KIND + "manifest.v1+json",
            "config": blob("config.v1+json", json.dumps(config).encode()),
            "layers": [blob("layer.v1.tar+gzip", gzip.compress(layer, 9, mtime=0))],
        }
        platform = {"architecture": tree.name, "os": "linux"}
        manifests.append(blob("manifest.v1+json", json.dumps(manifest).encode()) | {"platform": platform})
    every = {"schemaVersion": 2, "mediaType": KIND + "index.v1+json", "manifests": manifests}
    named = blob("index.v1+json", json.dumps(every).encode()) | {
        "annotations": {"org.opencontainers.image.ref.name": f"fairwave:{version}"}
    }
    index = {"schemaVersion": 2, "mediaType": KIND + "index.v1+json", "manifests": [named]}
    with tarfile.open(out, "w") as tar:
        add(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}', 0o644)
        add(tar, "index.json", json.dumps(index).encode(), 0o644)
        for name, data in sorted(blobs.items()):
            add(tar, f"blobs/sha256/{name}", data, 0o644)


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))

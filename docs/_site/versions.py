"""The versions that a reader of the site can choose: those of the changelog, each in a folder beside the others."""

from __future__ import annotations

import json
import re
from pathlib import Path


def versions(changelog: str) -> list[dict[str, str | bool]]:
    """What the theme's list of versions reads; the newest that is released is the preferred one.

    A version that is not released is "dev". Addresses are relative to the site of each version.
    """
    found: list[dict[str, str | bool]] = []
    for number, state in re.findall(r"^## (\d+\.\d+\.\d+) \((.*)\)$", changelog, re.MULTILINE):
        if state == "unreleased":
            found.append({"name": f"{number} (dev)", "version": "dev", "url": "../dev/"})
        else:
            first = not any([entry.get("preferred") for entry in found])
            found.append({"name": number, "version": number, "url": f"../{number}/", "preferred": first})
    return found


def write(changelog: Path, file: Path) -> None:
    file.write_text(json.dumps(versions(changelog.read_text()), indent=1) + "\n")

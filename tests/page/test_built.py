"""What the package has of the page is built from the sources beside it, with the licences of all libraries in it."""

import hashlib
import json
from pathlib import Path

PAGE = Path(__file__).parents[2] / "tfmemtop" / "page"
BUILT = PAGE / "built"


def test_it_is_built_from_these_sources() -> None:
    lines = (BUILT / "sources.sha256").read_text().splitlines()
    built = {name: digest for digest, name in (line.split("  ") for line in lines)}
    sources = [*PAGE.glob("*.js*"), *PAGE.glob("src/*")]
    assert built == {
        path.relative_to(PAGE).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in sources
    }, "run `npm install && npm run build` in tfmemtop/page"


def test_code_and_styles_are_small() -> None:
    assert sum((BUILT / name).stat().st_size for name in ("page.js", "page.css")) <= 250_000


def test_each_library_in_it_has_its_licence_beside_it() -> None:
    licences = (BUILT / "licences.txt").read_text()
    libraries = json.loads((PAGE / "package.json").read_text())["dependencies"]
    for name, version in libraries.items():
        assert f"{name} {version}\n" in licences
    assert licences.count("Copyright") >= len(libraries)

"""Recipes of Homebrew, conda-forge and Spack, as a release writes them."""

import ast
import hashlib
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    archive = tmp_path / "source.tar.gz"
    archive.write_bytes(b"an archive")
    script = ROOT / "packaging" / "recipes" / "write.py"
    subprocess.run([sys.executable, script, archive, tmp_path / "out"], check=True)
    return tmp_path / "out"


@pytest.fixture
def version() -> str:
    package: dict[str, str] = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    return package["version"]


SHA256 = hashlib.sha256(b"an archive").hexdigest()


def test_conda_recipe_has_the_archive_and_its_hash(recipes: Path, version: str) -> None:
    recipe = yaml.safe_load((recipes / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == version
    assert recipe["source"]["sha256"] == SHA256
    assert recipe["source"]["url"].endswith(f"fairwave-{version}-source.tar.gz")
    assert all((ROOT / name).is_file() for name in recipe["about"]["license_file"] if name.startswith("LICENSE"))


def test_spack_package_is_python_with_the_hash(recipes: Path, version: str) -> None:
    module = ast.parse((recipes / "package.py").read_text())
    (package,) = (node for node in module.body if isinstance(node, ast.ClassDef))
    calls = [ast.unparse(node) for node in package.body if isinstance(node, ast.Expr)]
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    assert f"version({version!r}, sha256={SHA256!r})" in calls
    assert f"depends_on('rust@{rust}:', type='build')" in calls


def test_homebrew_formula_has_the_hash_and_is_ruby(recipes: Path, version: str) -> None:
    formula = recipes / "fairwave.rb"
    text = formula.read_text()
    assert f'sha256 "{SHA256}"' in text
    assert f'fairwave-{version}-source.tar.gz"' in text
    # Homebrew's own limit.
    (description,) = (line for line in text.splitlines() if line.startswith("  desc "))
    assert len(description) - len('  desc ""') <= 80
    opened = sum(line.split()[0] in {"class", "def", "test"} for line in text.splitlines() if line.strip())
    assert text.split().count("end") == opened
    if ruby := shutil.which("ruby"):
        subprocess.run([ruby, "-c", formula], check=True, stdout=subprocess.DEVNULL)

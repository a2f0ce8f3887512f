"""Compiled kernels on disk: never stale, never a reason to stop, never code of somebody else."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import rankwright as rw
from rankwright.kernels import caching
from rankwright.kernels.jit import kernel, loose_kernel


def add_one(x):
    return x + 1


def add_two(x):
    return x + 2


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The one folder that kernels are kept in."""
    return use_folders(monkeypatch, tmp_path / "rankwright-here")[0]


def use_folders(monkeypatch, *folders: Path) -> tuple[Path, ...]:
    monkeypatch.setattr(caching, "_folders", lambda: folders)
    monkeypatch.setattr(caching, "_warned", False)
    for remembered in (caching._prune, caching._note_use):
        remembered.cache_clear()
    return folders


def call(fn=add_one, x=1.0, compile_=kernel) -> tuple[int, list[str]]:
    """Call a kernel as a new process would: how often it was compiled, and the warnings."""
    caching._warned = False
    compiled = compile_(fn)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert compiled(x) == fn(x)
    assert all(issubclass(one.category, rw.KernelCacheWarning) for one in found)
    return sum(compiled.stats.cache_misses.values()), [str(one.message) for one in found]


def test_a_kernel_is_compiled_once(folder):
    assert call() == (1, [])
    assert call() == (0, [])
    assert [path.suffix for path in folder.iterdir()] == [".nbc"]


def test_types_kernels_and_options_have_files_of_their_own(folder):
    for arguments in ((add_one, 1.0), (add_one, 1), (add_two, 1.0), (add_one, 1.0, loose_kernel)):
        assert call(*arguments) == (1, [])
        assert call(*arguments) == (0, [])
    assert len(list(folder.iterdir())) == 4


def test_a_folder_that_another_process_makes_is_read(folder):
    assert caching.list_trusted_folders() == ()
    folder.mkdir(mode=0o755)
    assert caching.list_trusted_folders() == (folder,)


class Raises:
    """Unpickling this raises."""

    def __reduce__(self):
        return int, ("not a number",)


def damage(path: Path, kind: str) -> None:
    content = bytearray(path.read_bytes())
    if kind == "empty":
        content.clear()
    elif kind == "half":
        del content[len(content) // 2 :]
    elif kind == "garbage":
        content[:] = os.urandom(len(content))
    elif kind == "longer":
        content += b"x"
    elif kind.startswith("bit"):
        content[int(float(kind[4:]) * (len(content) - 1))] ^= 1
    elif kind == "pickle that raises":
        content[:] = pickle.dumps(Raises())
        content[:0] = caching._checksum(path.name, bytes(content))
    elif kind == "pickle of something else":
        content[:] = pickle.dumps([1, 2, 3])
        content[:0] = caching._checksum(path.name, bytes(content))
    elif kind == "another kernel's":
        assert call(add_two) == (1, [])
        [other] = [each for each in path.parent.iterdir() if each != path]
        content[:] = other.read_bytes()
    path.write_bytes(content)


@pytest.mark.parametrize(
    "kind",
    ["empty", "half", "garbage", "longer", "bit 0", "bit 0.5", "bit 1", "pickle that raises",
     "pickle of something else", "another kernel's"],
)  # fmt: skip
def test_a_damaged_file_is_told_once_and_mended(folder, kind):
    call()
    [path] = folder.iterdir()
    damage(path, kind)
    compiled, [message] = call()
    assert compiled == 1
    assert message.startswith(f"{path}: a damaged file of compiled code")
    assert call() == (0, [])


def test_a_folder_that_vanishes_is_made_again(folder):
    call()
    shutil.rmtree(folder)
    assert call() == (1, [])
    assert call() == (0, [])


def test_a_full_disk_is_told_once_and_leaves_nothing(folder, monkeypatch):
    write = Path.write_bytes

    def write_half(path, content):
        write(path, content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(Path, "write_bytes", write_half)
    compiled, [message] = call()
    assert compiled == 1
    assert "No space left on device" in message
    assert "set NUMBA_CACHE_DIR" in message
    assert list(folder.iterdir()) == []
    monkeypatch.undo()


def test_without_a_writable_folder_there_is_one_warning_with_the_way_out(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    use_folders(monkeypatch, tmp_path / "file" / "rankwright-a", Path("/proc/rankwright-b"))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert (kernel(add_one)(1), kernel(add_two)(1), kernel(add_two)(1.0)) == (2, 3, 3.0)
    [warning] = found
    assert warning.category is rw.KernelCacheWarning
    assert "compiled kernels cannot be kept" in str(warning.message)
    assert "set NUMBA_CACHE_DIR to a folder that you can write to" in str(warning.message)


def test_a_file_that_cannot_be_written_sends_kernels_to_the_next_folder(tmp_path, monkeypatch):
    first, second = use_folders(monkeypatch, tmp_path / "1" / "rankwright-x", tmp_path / "2" / "rankwright-x")
    call()
    [path] = first.iterdir()
    path.unlink()
    path.mkdir()
    (path / "x").touch()
    assert call() == (1, [])
    assert len(list(second.iterdir())) == 1
    assert call() == (0, [])


def test_kernels_in_a_folder_that_is_only_read_are_used(tmp_path, monkeypatch):
    first, second = use_folders(monkeypatch, Path("/proc/rankwright-x"), tmp_path / "rankwright-x")
    assert call() == (1, [])
    use_folders(monkeypatch, second, first)
    monkeypatch.setattr(caching, "_write", None)
    assert call() == (0, [])


def test_a_worker_leaves_the_warning_to_its_parent(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    use_folders(monkeypatch, tmp_path / "file" / "rankwright-a")
    monkeypatch.setattr(caching.multiprocessing, "parent_process", object)
    assert call() == (1, [])
    monkeypatch.undo()
    use_folders(monkeypatch, tmp_path / "file" / "rankwright-a")
    with pytest.warns(rw.KernelCacheWarning, match="NUMBA_CACHE_DIR"):
        caching.warn_if_not_kept()
    use_folders(monkeypatch, tmp_path / "rankwright-a")
    caching.warn_if_not_kept()


class Plant:
    """Unpickling this makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
@pytest.mark.parametrize("how", ["open to all", "of another user", "trusted"])
def test_code_in_a_folder_that_others_can_write_to_is_not_run(folder, tmp_path, how):
    call()
    [path] = folder.iterdir()
    content = pickle.dumps(Plant(tmp_path / "planted"))
    path.write_bytes(caching._checksum(path.name, content) + content)
    if how == "open to all":
        folder.chmod(0o777)
    elif how == "of another user":
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        os.chown(folder, 12345, -1)
    compiled, [message] = call()
    assert compiled == 1
    assert (tmp_path / "planted").exists() == (how == "trusted")  # so that the other cases can fail
    assert (f"({folder}: other users can write to it)" in message) == (how != "trusted")


def test_folders_of_other_versions_are_pruned(folder):
    others = [folder.parent / f"rankwright-{i:024x}" for i in range(7)]
    for i, other in enumerate(others):
        other.mkdir()
        (other / "a.nbc").touch()
        os.utime(other, (i, i))
    others_own = [folder.parent / name for name in ("something-else", "rankwright-results", f"rankwright-{99:024x}")]
    for own in others_own:  # of the user, whatever it is called
        own.mkdir()
        (own / "results.sqlite").touch()
        os.utime(own, (0, 0))
    folder.mkdir()
    (folder / "old.tmp").touch()
    os.utime(folder / "old.tmp", (1, 1))
    call()
    assert [other.exists() for other in others] == [False] * 3 + [True] * 4
    assert all((own / "results.sqlite").exists() for own in others_own)
    assert [path.suffix for path in folder.iterdir()] == [".nbc"]


def test_an_upgrade_while_a_process_runs_is_not_mixed_with_it(folder, monkeypatch):
    monkeypatch.setattr(caching, "_STATE", [*caching._STATE[:-1], ("words.py", 1, 1)])
    assert call() == (1, [])
    assert not folder.exists()


def test_sources_that_cannot_be_read_are_told(folder, monkeypatch):
    """As in an archive: nothing says whether compiled code is still theirs."""
    monkeypatch.setattr(caching, "_HERE", Path(__file__).resolve().parent)
    monkeypatch.setattr(caching, "_STATE", [])
    caching._source_digest.cache_clear()
    compiled, [message] = call()
    caching._source_digest.cache_clear()
    assert compiled == 1
    assert "the kernels' sources cannot be read" in message
    assert not folder.exists()


def test_kernels_have_no_closures():
    """Else their compiled code would depend on values that are not in their sources; it is not kept."""
    other = 3
    assert kernel(lambda x: x + other)._cache._file_name(None, None) is None


# processes of their own

INNER = "from rankwright.kernels.jit import kernel\n@kernel\ndef step(x):\n    return x + 1\n"
OUTER = """
import sys
import numpy as np
from rankwright.kernels.sums.inner import step
from rankwright.kernels.jit import kernel

@kernel
def total(x):
    result = x[0] - x[0]
    for value in x:
        result += step(value)
    return result

def main():
    found = total(np.arange(4, dtype=sys.argv[1]))
    print(int(found), sum(total.stats.cache_misses.values()))
"""


def make_package(folder: Path) -> Path:
    """A package with the real way of compiling, and two kernels that call each other."""
    source = Path(rw.__file__).parent
    for room in ("basics", "kernels/sums"):
        (folder / "rankwright" / room).mkdir(parents=True)
    for name in (
        "basics/__init__.py",
        "basics/errors.py",
        "basics/synonyms.py",
        "kernels/__init__.py",
        "kernels/jit.py",
        "kernels/caching.py",
        "kernels/compiling.py",
    ):
        shutil.copy(source / name, folder / "rankwright" / name)
    (folder / "rankwright" / "__init__.py").touch()
    (folder / "rankwright" / "kernels" / "sums" / "__init__.py").touch()
    (folder / "rankwright" / "kernels" / "sums" / "inner.py").write_text(INNER)
    (folder / "rankwright" / "kernels" / "outer.py").write_text(OUTER)
    return folder


def search_path(package: Path) -> str:
    """The package, and the libraries for an interpreter that does not find them by itself."""
    return os.pathsep.join([str(package), str(Path(np.__file__).parents[1])])


def start(package: Path, kind: str = "float64", **settings: str) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | settings
    environment |= {"PYTHONPATH": search_path(package), "PYTHONWARNINGS": "always"}
    command = [sys.executable, "-c", "from rankwright.kernels.outer import main; main()", kind]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(package: Path, kind: str = "float64", **settings: str) -> tuple[str, str]:
    out, err = start(package, kind, **settings).communicate()
    return out.strip(), err


def test_a_change_of_a_kernel_that_is_called_is_seen(tmp_path):
    package = make_package(tmp_path / "package")
    assert run(package) == ("10 1", "")
    assert run(package) == ("10 0", "")
    inner = package / "rankwright" / "kernels" / "sums" / "inner.py"
    status = inner.stat()
    inner.write_text(INNER.replace("x + 1", "x + 2"))
    os.utime(inner, ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000_000))
    assert run(package) == ("14 1", "")
    assert run(package) == ("14 0", "")


def test_checkouts_with_the_same_sources_share_a_folder(tmp_path):
    first, second = make_package(tmp_path / "a"), make_package(tmp_path / "b")
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert run(first, **cache) == ("10 1", "")
    assert run(second, **cache) == ("10 0", "")
    assert list(first.rglob("*.nbc")) == list(second.rglob("*.nbc")) == []


def test_processes_that_compile_at_once_do_not_disturb_each_other(tmp_path):
    package = make_package(tmp_path / "package")
    kinds = ("float64", "float32", "float64")
    for out, err in [process.communicate() for process in [start(package, kind) for kind in kinds]]:
        assert out in (
            "10 1\n",
            "10 0\n",
        )  # the latter where another process was so much earlier that its file is there
        assert err == ""
    for kind in set(kinds):
        assert run(package, kind) == ("10 0", "")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs another user to run as")
def test_a_user_without_a_home_on_a_read_only_installation(tmp_path):
    package = make_package(tmp_path / "package")
    for folder in (*tmp_path.parents, tmp_path, package):
        if folder.stat().st_uid == 0 and str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    nobody = {"user": 65534, "group": 65534, "env": {"PYTHONPATH": search_path(package), "HOME": "/nonexistent"}}
    command = [sys.executable, "-c", "from rankwright.kernels.outer import main; main()", "float64"]
    try:
        subprocess.run([sys.executable, "-c", "import numba"], check=True, capture_output=True, **nobody)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("another user cannot start this Python")
    found = subprocess.run(command, capture_output=True, text=True, check=False, **nobody)
    assert (found.returncode, found.stdout) == (0, "10 1\n")
    assert found.stderr.count("KernelCacheWarning") == 1
    assert run(package) == ("10 1", "")  # an administrator fills the cache, as when an image is built
    found = subprocess.run(command, capture_output=True, text=True, check=False, **nobody)
    assert (found.stdout, found.stderr) == ("10 0\n", "")


def test_the_library_works_with_the_compiler_switched_off(tmp_path):
    package = make_package(tmp_path / "package")
    code = "from rankwright.kernels.outer import total; import numpy as np; print(total(np.arange(4)))"
    environment = os.environ | {"PYTHONPATH": search_path(package), "NUMBA_DISABLE_JIT": "1"}
    assert subprocess.check_output([sys.executable, "-c", code], env=environment, text=True) == "10\n"


def test_results_do_not_depend_on_where_the_code_comes_from(folder):
    x = np.linspace(0, 1, 7)
    first, again = (kernel(np_sum)(x) for _ in range(2))
    assert first == again


def np_sum(x):
    return x.sum()

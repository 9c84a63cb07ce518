"""result.json of others: files that it names stay in its folder, and nothing but a file is read."""

from pathlib import Path

import pytest

from graphs.shared_files import key, write_json
from mathamr.evaluation.result_file import RESULT, read_result


@pytest.mark.parametrize("name", ["..", "run.tsv", "../../outside.tsv"])
def test_a_name_that_is_no_file_of_the_folder_is_not_read(name: str, tmp_path: Path) -> None:
    place = tmp_path / "jobs" / "none-seed1"
    (place / "run.tsv").mkdir(parents=True)
    (tmp_path / "outside.tsv").write_text("secret")
    content = {"key": "k", "files": {name: "0" * 16}}
    write_json(place / RESULT, {**content, "digest": key(content)})
    assert read_result(place) == {"key": "k"}

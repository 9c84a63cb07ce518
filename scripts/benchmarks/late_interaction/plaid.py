"""Search token vectors with fast-plaid, the index of PyLate, in a separate environment.

    ENVIRONMENT/bin/python scripts/benchmarks/late_interaction/plaid.py FOLDER [BITS ...]

It imports nothing of this project: fast-plaid requires another torch. FOLDER has ``documents.npy`` and ``queries.npy``,
(vectors, dim), with the number of vectors of each document and query in ``document_sizes.npy`` and
``query_sizes.npy``. For each number of bits and of probes, the ranking is written to
``BITS-PROBES.json``, best first, documents as numbers. The last line of output is one JSON object: bytes of each
index and seconds.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from fast_plaid.search import FastPlaid

PROBES = (8, 32)  # clusters that each query vector looks into; 8 is the default
K = 1000


def sets(folder: Path, name: str) -> list[torch.Tensor]:
    """Read the sets of vectors."""
    vectors = torch.from_numpy(np.load(folder / f"{name}s.npy"))
    return list(vectors.split(np.load(folder / f"{name}_sizes.npy").tolist()))


def main(folder: Path, bits: list[int]) -> None:
    """Build an index for each number of bits, and search it."""
    torch.set_num_threads(1)
    documents, queries = sets(folder, "document"), sets(folder, "query")
    result = {}
    for some in bits:
        path = folder / f"plaid-{some}"
        begin = time.perf_counter()
        index = FastPlaid(index=str(path), device="cpu")
        index.create(documents, nbits=some)
        result[f"{some}_build_seconds"] = time.perf_counter() - begin
        result[f"{some}_bytes"] = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        for probes in PROBES:
            options = {"n_ivf_probe": probes, "show_progress": False, "n_processes": 1}
            index.search(queries[:1], top_k=K, **options)  # reads files
            found, begin = [], time.perf_counter()
            for query in queries:  # one after the other, as people ask
                found += index.search([query], top_k=K, **options)
            result[f"{some}-{probes}_seconds"] = time.perf_counter() - begin
            numbers = [[number for number, _ in ranking] for ranking in found]
            (folder / f"{some}-{probes}.json").write_text(json.dumps(numbers))
    print(json.dumps(result))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(word) for word in sys.argv[2:]] or [4, 2])

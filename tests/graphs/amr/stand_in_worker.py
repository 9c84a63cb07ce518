"""A stand-in for the worker of the transition parser: its sentences say what it shall do."""

import json
import sys
import time


def answer(sentences):
    text = " ".join(sentences)
    if "crash" in text:
        sys.stderr.write("Killed: out of memory\n")
        sys.exit(137)
    if "hang" in text:
        time.sleep(60)
    if "broken" in text:
        return "(b / broken :ARG0"
    if "empty" in text:
        return "(a / amr-empty)"
    if "disconnected" in text:
        return "(a / and :op1 (b / b~1))\n(c / c~2)"
    if len(sentences) == 1:
        return f'(s / say-01~0 :ARG1 "{text}")'
    return "(d / document " + " ".join(f":snt{i} (s{i} / say-01~e.{i})" for i in range(1, len(sentences) + 1)) + ")"


def write(record):
    print(json.dumps(record) if not isinstance(record, str) else record, flush=True)


def main(model):
    if model == "no-start":
        sys.exit("no model of that name")
    write({"ready": True, "version": "0.0.1"} if model != "rude" else "Loading model ...")
    batch = []
    for line in sys.stdin:
        if line.strip():
            batch.append(json.loads(line))
            continue
        if any("raise" in sentence for chunk in batch for sentence in chunk["sentences"]):
            write({"batch_error": "ValueError: raised"})
        else:
            for chunk in batch:
                if "chatter" in chunk["sentences"][0]:
                    write("here I am")
                elif "refuse" in chunk["sentences"][0]:
                    write({"post_id": "", "chunk": chunk["chunk"], "error": "too long"})
                else:
                    write({"post_id": "", "chunk": chunk["chunk"], "penman": answer(chunk["sentences"])})
        batch = []


if __name__ == "__main__":
    main(sys.argv[sys.argv.index("--model") + 1])

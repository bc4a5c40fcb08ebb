#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Validates shipped files, or the reports that the program prints, against a JSON Schema of data/schema.

usage: validate.py SCHEMA FOLDER
       validate.py SCHEMA FOLDER-OF-SCENARIOS PROGRAM
       validate.py SCHEMA plan-report|plan-file|simulation|validation|fit|membership PROGRAM
       validate.py SCHEMA measured|measured-comparison PROGRAM EXECUTOR

Also tries the schema itself: without a required key, with a key more, and with a newer major version nothing may pass.
Exits with 77 where the module jsonschema is missing, which ctest counts as skipped.
"""
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    print("skipped: install the Debian package python3-jsonschema")
    sys.exit(77)

# Reports that the plain scenarios do not give: a refused method, one method alone, no scenario file at all.
OTHER_REPORTS = (
    ["deepseek-v3-h100", "--generate", "tp16.pp2"],
    ["deepseek-v3-h100", "--generate", "tp16.pp2", "--method", "reshard"],
    ["kimi-k3-h100", "--method", "striped"],
    ["--model", "qwen3-30b-a3b", "--train", "pp2.ep8@32", "--generate", "tp2@16", "--system", "gb300-nvl72"],
    ["qwen3-235b-h100", "--step-time", "1s", "--set", "system.nic=800Gbit/s"],
    ["deepseek-v3-h100", "--set", "system.train=h200-nvl8", "--set", "system.generate=h100-nvl8"],
    ["qwen3-235b-h100", "--coverage", "pattern:*.experts.*", "--set", "engine.options.broadcast_root=each-pp-stage",
     "--set", "engine.options.broadcast_group=generators", "--set", "engine.options.shadow_copy=true"],
    ["deepseek-v3-h100", "--oversubscription", "4:1", "--domains-per-pod", "2", "--nic", "3=down", "--nic", "300=10GB/s"],
)

SIMULATIONS = (
    ["deepseek-v3-h100"],
    ["deepseek-v3-gb200", "--method", "gather-broadcast"],
    ["qwen3-235b-h100", "--method", "direct"],
    ["reshard-one-domain", "--method", "optimal"],
)


# The last one has a method that is refused.
MEMBERSHIPS = (
    ["deepseek-v3-h100", "--lose", "1node", "--gain", "2node"],
    ["qwen3-235b-h100", "--lose", "1node,1gpu"],
    ["deepseek-v3-h100", "--gain", "4node", "--generate", "tp16.pp2", "--method", "direct,hybrid"],
)


def reject_constant(name):
    raise ValueError(f"{name} is no JSON")


def report(program, arguments, command="compare"):
    """What the program prints as JSON; it answers or says that every method is refused."""
    command = [program, command, *arguments, "-o", "json"]
    run = subprocess.run(command, capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, check=False)
    if run.returncode not in (0, 4) or run.stderr:
        raise RuntimeError(f"{' '.join(arguments)}: exit {run.returncode}\n{run.stderr}")
    return json.loads(run.stdout, parse_constant=reject_constant)


def planned(program, kind, words):
    """The report of a plan, or the plan file itself."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "plan.json"
        command = [program, "plan", *words, "-o", "json", "-O", str(file)]
        run = subprocess.run(command, capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, check=False)
        if run.returncode != 0 or run.stderr:
            raise RuntimeError(f"{' '.join(words)}: exit {run.returncode}\n{run.stderr}")
        text = run.stdout if kind == "plan-report" else file.read_text(encoding="utf-8")
        return json.loads(text, parse_constant=reject_constant)


def measured_documents(kind, program):
    """What refit-exec reports of plans on this machine, or refit compare of such a report."""
    for method in ("gather-broadcast", "direct", "optimal"):
        with tempfile.TemporaryDirectory() as folder:
            plan = str(pathlib.Path(folder) / "plan.json")
            subprocess.run([program, "plan", "reshard-two-domains", "--model", "teaching-matrix/256", "--method", method, "-O", plan],
                           check=True, capture_output=True)
            run = subprocess.run([sys.argv[4], plan, "--runs", "2", "-o", "json", "--resume-without", "5"], check=True,
                                 capture_output=True, text=True)
            if kind == "measured":
                yield method, json.loads(run.stdout, parse_constant=reject_constant)
                continue
            file = pathlib.Path(folder) / "measured.json"
            file.write_text(run.stdout, encoding="utf-8")
            yield method, report(program, ["reshard-two-domains", "--measured", str(file)])


def documents(folder, program):
    """Pairs of a name and a parsed document."""
    if folder in ("plan-report", "plan-file"):
        for method in ("gather-broadcast", "hybrid", "direct", "striped", "optimal"):
            words = ["reshard-two-domains" if method != "optimal" else "qwen3-235b-h100", "--method", method]
            yield " ".join(words), planned(program, folder, words)
        words = ["qwen3-235b-h100", "--method", "hybrid", "--coverage", "pattern:*.down_proj.weight",
                 "--set", "engine.options.broadcast_senders=2"]
        yield " ".join(words), planned(program, folder, words)
        words = ["reshard-two-domains", "--method", "direct", "--oversubscription", "4:1", "--domains-per-pod", "1",
                 "--nic", "3=down", "--set", "fabric.rail_only=true", "--without", "generation:3"]
        yield " ".join(words), planned(program, folder, words)
        return
    if folder == "validation":
        for words in ([], ["--simulate"]):
            yield " ".join(["validate", *words]), report(program, words, "validate")
        return
    if folder in ("measured", "measured-comparison"):
        yield from measured_documents(folder, program)
        return
    if folder == "fit":
        yield "fit", report(program, [], "fit")
        return
    if folder == "membership":
        for words in MEMBERSHIPS:
            yield " ".join(words), report(program, words, "membership")
        return
    if folder == "simulation":
        for words in SIMULATIONS:
            document = report(program, words, "simulate")
            if document["methods"][0]["kind"] != "simulate" or "simulation" not in document:
                raise RuntimeError(f"{' '.join(words)}: no simulation")
            yield " ".join(words), document
        return
    files = sorted(pathlib.Path(folder).glob("*.json"))
    if program is None:
        for file in files:
            yield file.name, json.loads(file.read_text(encoding="utf-8"), parse_constant=reject_constant)
        return
    for words in [[file.stem] for file in files] + list(OTHER_REPORTS):
        yield " ".join(words), report(program, words)


def spoilt(schema, document):
    """Variants of a valid document that must not pass, each with its name."""
    for key in schema["required"]:
        variant = copy.copy(document)
        del variant[key]
        yield f"without {key}", variant
    yield "with a key more", {**document, "unheard_of": 1}
    yield "of a newer major version", {**document, "schema_version": "2.0"}
    yield "of another schema", {**document, "schema": "refit.other"}


def main():
    schema = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    count = 0
    failures = 0
    for name, document in documents(sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else None):
        count += 1
        for error in validator.iter_errors(document):
            failures += 1
            print(f"{name}: /{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
        for what, variant in spoilt(schema, document):
            if validator.is_valid(variant):
                failures += 1
                print(f"{name} {what} passes, but must not")
    print(f"{count} documents, {failures} failures")
    sys.exit(0 if count > 0 and failures == 0 else 1)


main()

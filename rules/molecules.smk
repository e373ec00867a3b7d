# Training molecules -> their fingerprints, scaffolds and properties, once per experiment.
rule describe_molecules:
    input:
        smiles="results/{experiment}/data/smiles.parquet",
    output:
        molecules="results/{experiment}/reference/molecules.parquet",
    log:
        "results/{experiment}/logs/describe-molecules.log",
    benchmark:
        "results/{experiment}/benchmarks/describe-molecules.tsv"
    wildcard_constraints:
        experiment=only("molecules"),
    conda:
        "../envs/cpu.yaml"
    threads: CORES
    resources:
        mem_mb=memory("describe_molecules"),
        runtime=grown(60),
    params:
        step="describe_molecules",
    shell:
        "python -m pairflow.kinds.molecules.steps.{params.step:q} --threads {threads} --smiles {input.smiles:q} --out {output:q} > {log:q} 2>&1"


# What is usual in them, where the experiment asks for plausible molecules.
use rule describe_molecules as norms with:
    output:
        norms="results/{experiment}/reference/norms.parquet",
    log:
        "results/{experiment}/logs/norms.log",
    benchmark:
        "results/{experiment}/benchmarks/norms.tsv"
    params:
        step="norms",


# Training molecules -> statistics of their ChemNet features, where the experiment asks for FCD.
use rule describe_molecules as chemnet with:
    output:
        chemnet="results/{experiment}/reference/chemnet.parquet",
    log:
        "results/{experiment}/logs/chemnet.log",
    benchmark:
        "results/{experiment}/benchmarks/chemnet.tsv"
    threads: 1
    resources:
        gpu=gpu,
        mem_mb=memory("chemnet", gpu),
        runtime=grown(60),
    params:
        step="chemnet",

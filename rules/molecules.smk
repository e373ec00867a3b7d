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
        mem_mb=grown(4000),
        runtime=grown(60),
    shell:
        "python -m pairflow.steps.describe_molecules --threads {threads} --smiles {input.smiles:q}"
        " --out {output.molecules:q} > {log:q} 2>&1"


# Training molecules -> statistics of their ChemNet features, where the experiment asks for FCD.
rule chemnet:
    input:
        smiles="results/{experiment}/data/smiles.parquet",
    output:
        chemnet="results/{experiment}/reference/chemnet.parquet",
    log:
        "results/{experiment}/logs/chemnet.log",
    benchmark:
        "results/{experiment}/benchmarks/chemnet.tsv"
    wildcard_constraints:
        experiment=only("molecules"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        gpu=gpu,
        mem_mb=grown(4000),
        runtime=grown(60),
    shell:
        "python -m pairflow.steps.chemnet --threads {threads} --smiles {input.smiles:q}"
        " --out {output.chemnet:q} > {log:q} 2>&1"

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


# Samples of molecules -> metric rows, and histograms of their properties.
rule evaluate:
    input:
        unpack(chemnet_statistics),
        samples="results/{experiment}/seed{seed}/samples/{method}/{evaluation}/nfe{nfe}.parquet",
        vocabulary="results/{experiment}/data/vocabulary.json",
        smiles="results/{experiment}/data/smiles.parquet",
        molecules="results/{experiment}/reference/molecules.parquet",
    output:
        metrics="results/{experiment}/seed{seed}/metrics/{method}/{evaluation}/nfe{nfe}.parquet",
        properties="results/{experiment}/seed{seed}/properties/{method}/{evaluation}/nfe{nfe}.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}.tsv"
    wildcard_constraints:
        experiment=only("molecules"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=grown(4000),
        runtime=grown(60),
    params:
        settings=settings_of("chemistry_settings"),
    shell:
        "python -m pairflow.steps.evaluate --settings {params.settings:q} --threads {threads}"
        " --evaluation {wildcards.evaluation:q} --samples {input.samples:q} --vocabulary {input.vocabulary:q}"
        " --smiles {input.smiles:q} --molecules {input.molecules:q}"
        " --chemnet results/{wildcards.experiment}/reference/chemnet.parquet"
        " --out {output.metrics:q} --properties {output.properties:q} > {log:q} 2>&1"

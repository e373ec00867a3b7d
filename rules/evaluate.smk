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
for end, experiments, evaluations, numbers, log_end in nfe_jobs("molecules"):

    rule:
        name:
            f"evaluate{end}"
        input:
            unpack(chemnet_statistics),
            samples=expand(
                "results/{{experiment}}/seed{{seed}}/samples/{{method}}/{{evaluation}}/nfe{nfe}.parquet",
                nfe=numbers,
            ),
            vocabulary="results/{experiment}/data/vocabulary.json",
            smiles="results/{experiment}/data/smiles.parquet",
            molecules="results/{experiment}/reference/molecules.parquet",
        output:
            metrics=expand(
                "results/{{experiment}}/seed{{seed}}/metrics/{{method}}/{{evaluation}}/nfe{nfe}.parquet",
                nfe=numbers,
            ),
            properties=expand(
                "results/{{experiment}}/seed{{seed}}/properties/{{method}}/{{evaluation}}/nfe{nfe}.parquet",
                nfe=numbers,
            ),
        log:
            f"results/{{experiment}}/logs/seed{{seed}}/evaluate-{{method}}-{{evaluation}}{log_end}.log",
        benchmark:
            f"results/{{experiment}}/benchmarks/seed{{seed}}/evaluate-{{method}}-{{evaluation}}{log_end}.tsv"
        wildcard_constraints:
            experiment=experiments,
            evaluation=evaluations,
        conda:
            "../envs/cpu.yaml"
        threads: 1
        resources:
            mem_mb=grown(4000),
            runtime=grown(60),
        params:
            settings=settings_of("chemistry_settings"),
        shell:
            "python -m pairflow.runtime.several pairflow.steps.evaluate --settings {params.settings:q} --threads {threads}"
            " --evaluation {wildcards.evaluation:q} --vocabulary {input.vocabulary:q} --smiles {input.smiles:q}"
            " --molecules {input.molecules:q} --chemnet results/{wildcards.experiment}/reference/chemnet.parquet"
            + for_each(
                numbers,
                "--samples {input.samples[#]:q} --out {output.metrics[#]:q} --properties {output.properties[#]:q}",
            )
            + " > {log:q} 2>&1"

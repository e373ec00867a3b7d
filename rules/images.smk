from pairflow.kinds.images.kind import classifier_files


# Images with labels -> a classifier, whose features images are compared by.
rule classify:
    input:
        tokens="results/{experiment}/data/train.parquet",
        validation="results/{experiment}/data/validation.parquet",
    output:
        weights="results/{experiment}/reference/classifier.safetensors",
        description="results/{experiment}/reference/classifier.json",
    log:
        "results/{experiment}/logs/classify.log",
    benchmark:
        "results/{experiment}/benchmarks/classify.tsv"
    wildcard_constraints:
        experiment=only("images"),
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=grown(4000),
        runtime=grown(60),
    params:
        settings=settings_of("classify_settings"),
    shell:
        "python -m pairflow.kinds.images.steps.classify --settings {params.settings:q} --threads {threads}"
        " --tokens {input.tokens:q} --validation {input.validation:q}"
        " --out {output.weights:q} --description {output.description:q} > {log:q} 2>&1"


# Real images -> their statistics, train or test, once per experiment.
rule reference:
    input:
        unpack(
            lambda wildcards: classifier_files(
                root_of(wildcards), experiment_of(wildcards), comparison_of(wildcards)
            )
        ),
        tokens=lambda wildcards: paths.real_rows(root_of(wildcards), wildcards.reference),
    output:
        reference="results/{experiment}/reference/{reference}{comparison}.parquet",
    log:
        "results/{experiment}/logs/reference-{reference}{comparison}.log",
    benchmark:
        "results/{experiment}/benchmarks/reference-{reference}{comparison}.tsv"
    wildcard_constraints:
        experiment=only("images"),
        reference="train|test",
    conda:
        "../envs/cpu.yaml"
    resources:
        gpu=gpu,
        mem_mb=grown(4000),
        runtime=grown(480),
    params:
        settings=settings_of("extractor_settings", "comparison"),
    shell:
        "python -m pairflow.kinds.images.steps.reference --settings {params.settings:q} --threads {threads}"
        " --classifier results/{wildcards.experiment}/reference/classifier.safetensors"
        " --tokens {input.tokens:q} --out {output.reference:q} > {log:q} 2>&1"

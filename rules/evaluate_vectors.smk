# Real vectors -> metric rows of real against real rows, at the numbers of an evaluation.
rule floor_vectors:
    input:
        tokens="results/{experiment}/data/train.parquet",
        validation="results/{experiment}/data/validation.parquet",
    output:
        metrics="results/{experiment}/reference/floor-{evaluation}.parquet",
    log:
        "results/{experiment}/logs/floor-{evaluation}.log",
    benchmark:
        "results/{experiment}/benchmarks/floor-{evaluation}.tsv"
    wildcard_constraints:
        experiment=only("vectors"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=grown(4000),
        runtime=grown(60),
    params:
        settings=settings_of("real_draws", "evaluation"),
    shell:
        "python -m pairflow.steps.floor_vectors --settings {params.settings:q}"
        " --evaluation {wildcards.evaluation:q} --tokens {input.tokens:q} --validation {input.validation:q}"
        " --out {output.metrics:q} > {log:q} 2>&1"


# Samples of vectors -> metric rows.
rule evaluate_vectors:
    input:
        samples="results/{experiment}/seed{seed}/samples/{method}/{evaluation}/nfe{nfe}.parquet",
        tokens="results/{experiment}/data/train.parquet",
        validation="results/{experiment}/data/validation.parquet",
    output:
        metrics="results/{experiment}/seed{seed}/metrics/{method}/{evaluation}/nfe{nfe}.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}.tsv"
    wildcard_constraints:
        experiment=only("vectors"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=grown(4000),
        runtime=grown(60),
    shell:
        "python -m pairflow.steps.evaluate_vectors"
        " --evaluation {wildcards.evaluation:q} --samples {input.samples:q} --tokens {input.tokens:q}"
        " --validation {input.validation:q} --out {output.metrics:q} > {log:q} 2>&1"

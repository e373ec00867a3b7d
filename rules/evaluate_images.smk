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
    threads: 1
    resources:
        mem_mb=grown(4000),
        runtime=grown(60),
    params:
        settings=settings_of("classify_settings"),
    shell:
        "python -m pairflow.steps.classify --settings {params.settings:q} --threads {threads}"
        " --tokens {input.tokens:q} --validation {input.validation:q}"
        " --out {output.weights:q} --description {output.description:q} > {log:q} 2>&1"


# Real images -> their statistics, train or test, once per experiment.
rule reference:
    input:
        unpack(extractor_files),
        tokens=lambda wildcards: paths.images(Path("results", wildcards.experiment), wildcards.reference),
    output:
        reference="results/{experiment}/reference/{reference}{extractor}.parquet",
    log:
        "results/{experiment}/logs/reference-{reference}{extractor}.log",
    benchmark:
        "results/{experiment}/benchmarks/reference-{reference}{extractor}.tsv"
    wildcard_constraints:
        experiment=only("images"),
        reference="train|test",
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        gpu=gpu,
        mem_mb=grown(4000),
        runtime=grown(480),
    params:
        settings=settings_of("extractor_settings", "extractor"),
    shell:
        "python -m pairflow.steps.reference --settings {params.settings:q} --threads {threads}"
        " --classifier results/{wildcards.experiment}/reference/classifier.safetensors"
        " --tokens {input.tokens:q} --out {output.reference:q} > {log:q} 2>&1"


# Real images -> metric rows of real against real images, at the numbers of an evaluation.
rule floor:
    input:
        unpack(compared_images),
    output:
        metrics="results/{experiment}/reference/floor-{evaluation}{extractor}.parquet",
    log:
        "results/{experiment}/logs/floor-{evaluation}{extractor}.log",
    benchmark:
        "results/{experiment}/benchmarks/floor-{evaluation}{extractor}.tsv"
    wildcard_constraints:
        experiment=only("images"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        gpu=gpu,
        mem_mb=grown(4000),
        runtime=grown(480),
    params:
        settings=settings_of("floor_settings", "evaluation", "extractor"),
    shell:
        "python -m pairflow.steps.floor --settings {params.settings:q} --threads {threads}"
        " --classifier results/{wildcards.experiment}/reference/classifier.safetensors"
        " --evaluation {wildcards.evaluation:q} --tokens {input.tokens:q} --validation {input.validation:q}"
        " --train-reference {input.train:q}"
        " --test-reference results/{wildcards.experiment}/reference/test{wildcards.extractor}.parquet"
        " --out {output.metrics:q} > {log:q} 2>&1"


# Samples of images -> metric rows.
rule evaluate_images:
    input:
        unpack(compared_images),
        samples="results/{experiment}/seed{seed}/samples/{method}/{evaluation}/nfe{nfe}.parquet",
    output:
        metrics="results/{experiment}/seed{seed}/metrics/{method}/{evaluation}/nfe{nfe}{extractor}.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}{extractor}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}{extractor}.tsv"
    wildcard_constraints:
        experiment=only("images"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        gpu=gpu,
        mem_mb=grown(4000),
        runtime=grown(480),
    params:
        settings=settings_of("comparison_settings", "extractor"),
    shell:
        "python -m pairflow.steps.evaluate_images --settings {params.settings:q} --threads {threads}"
        " --classifier results/{wildcards.experiment}/reference/classifier.safetensors"
        " --evaluation {wildcards.evaluation:q} --samples {input.samples:q} --tokens {input.tokens:q}"
        " --validation {input.validation:q} --train-reference {input.train:q}"
        " --test-reference results/{wildcards.experiment}/reference/test{wildcards.extractor}.parquet"
        " --out {output.metrics:q} > {log:q} 2>&1"

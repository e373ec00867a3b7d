# Text that no generator has seen -> the second judge of samples, a transformer.
rule train_judge:
    input:
        judge="results/{experiment}/data/judge.parquet",
        vocabulary="results/{experiment}/data/vocabulary.json",
    output:
        weights="results/{experiment}/reference/judge.safetensors",
        description="results/{experiment}/reference/judge.json",
    log:
        "results/{experiment}/logs/train-judge.log",
    benchmark:
        "results/{experiment}/benchmarks/train-judge.tsv"
    wildcard_constraints:
        experiment=only("text"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=grown(4000),
        runtime=grown(480),
    params:
        settings=judge_transformer,
    shell:
        "python -m pairflow.steps.train_judge --settings {params.settings:q} --threads {threads}"
        " --judge {input.judge:q} --vocabulary {input.vocabulary:q}"
        " --out {output.weights:q} --description {output.description:q} > {log:q} 2>&1"


# Real text -> metric rows of held-out text and of the controls, at the numbers of an evaluation.
rule floor_text:
    input:
        unpack(judge_files),
        tokens="results/{experiment}/data/train.parquet",
        validation="results/{experiment}/data/validation.parquet",
        judge="results/{experiment}/data/judge.parquet",
        vocabulary="results/{experiment}/data/vocabulary.json",
    output:
        metrics="results/{experiment}/reference/floor-{evaluation}.parquet",
    log:
        "results/{experiment}/logs/floor-{evaluation}.log",
    benchmark:
        "results/{experiment}/benchmarks/floor-{evaluation}.tsv"
    wildcard_constraints:
        experiment=only("text"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        gpu=judge_gpu,
        mem_mb=judge_memory,
        runtime=grown(120),
    params:
        settings=settings_of("judged_draws", "evaluation"),
    shell:
        "python -m pairflow.steps.floor_text --settings {params.settings:q} --threads {threads}"
        " --evaluation {wildcards.evaluation:q} --tokens {input.tokens:q} --validation {input.validation:q}"
        " --judge {input.judge:q} --vocabulary {input.vocabulary:q}"
        " --judge-weights results/{wildcards.experiment}/reference/judge.safetensors"
        " --out {output.metrics:q} > {log:q} 2>&1"


# Samples of text -> metric rows.
rule evaluate_text:
    input:
        unpack(judge_files),
        samples="results/{experiment}/seed{seed}/samples/{method}/{evaluation}/nfe{nfe}.parquet",
        tokens="results/{experiment}/data/train.parquet",
        validation="results/{experiment}/data/validation.parquet",
        judge="results/{experiment}/data/judge.parquet",
        vocabulary="results/{experiment}/data/vocabulary.json",
    output:
        metrics="results/{experiment}/seed{seed}/metrics/{method}/{evaluation}/nfe{nfe}.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}.tsv"
    wildcard_constraints:
        experiment=only("text"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        gpu=judge_gpu,
        mem_mb=judge_memory,
        runtime=grown(120),
    params:
        settings=settings_of("judge_settings"),
    shell:
        "python -m pairflow.steps.evaluate_text --settings {params.settings:q} --threads {threads}"
        " --evaluation {wildcards.evaluation:q} --samples {input.samples:q} --tokens {input.tokens:q}"
        " --validation {input.validation:q} --judge {input.judge:q} --vocabulary {input.vocabulary:q}"
        " --judge-weights results/{wildcards.experiment}/reference/judge.safetensors"
        " --out {output.metrics:q} > {log:q} 2>&1"

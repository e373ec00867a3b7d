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
    resources:
        mem_mb=grown(4000),
        runtime=grown(480),
    params:
        settings=lambda wildcards: as_json(
            load_settings("text").judge_settings(experiment_of(wildcards)).transformer
        ),
    shell:
        "python -m pairflow.kinds.text.steps.train_judge --settings {params.settings:q} --threads {threads}"
        " --judge {input.judge:q} --vocabulary {input.vocabulary:q}"
        " --out {output.weights:q} --description {output.description:q} > {log:q} 2>&1"

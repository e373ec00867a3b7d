# A model -> how much the positions of its samples depend on one another, given the source state.
rule correlate:
    input:
        model="results/{experiment}/seed{seed}/models/{method}/model.safetensors",
        description="results/{experiment}/seed{seed}/models/{method}/model.json",
        tokens="results/{experiment}/data/train.parquet",
    output:
        metrics="results/{experiment}/seed{seed}/metrics/{method}/correlation.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/correlate-{method}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/correlate-{method}.tsv"
    conda:
        "../envs/cpu.yaml"
    resources:
        gpu=gpu,
        mem_mb=memory("correlate", gpu),
        runtime=grown(1440),
    params:
        settings=asked(lambda job: job.experiment.correlate_settings(job.seed)),
    shell:
        "python -m pairflow.steps.correlate --settings {params.settings:q} --threads {threads}"
        " --resume results/{wildcards.experiment}/seed{wildcards.seed}/resume/correlate"
        " --model $(dirname {input.model:q}) --tokens {input.tokens:q} --out {output.metrics:q} > {log:q} 2>&1"

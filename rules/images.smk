# Real images -> their statistics, train or test, once per experiment.
rule reference:
    input:
        tokens=asked(lambda job: paths.real_rows(job.root, job.reference)),
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
        mem_mb=memory("reference", gpu),
        runtime=grown(480),
    params:
        settings=asked(lambda job: job.kind.reference.extractor_settings(job.experiment, job.comparison)),
    shell:
        "python -m pairflow.kinds.images.steps.reference --settings {params.settings:q} --threads {threads}"
        " --tokens {input.tokens:q} --out {output.reference:q} > {log:q} 2>&1"

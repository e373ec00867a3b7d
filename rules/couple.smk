# Pairs -> metric rows of the coupling; token rows -> coverage of the forward velocity.
rule diagnose:
    input:
        pairs="results/{experiment}/seed{seed}/pairs/{coupling}.parquet",
    output:
        metrics="results/{experiment}/seed{seed}/metrics/{coupling}/coupling.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/diagnose-{coupling}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/diagnose-{coupling}.tsv"
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=memory("diagnose"),
        runtime=grown(60),
    shell:
        "python -m pairflow.steps.diagnose --method {wildcards.coupling:q} --pairs {input.pairs:q}"
        " --out {output.metrics:q} > {log:q} 2>&1"


rule cover:
    input:
        tokens="results/{experiment}/data/train.parquet",
    output:
        metrics="results/{experiment}/seed{seed}/metrics/forward/coverage.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/cover.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/cover.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: CORES
    resources:
        mem_mb=memory("cover"),
        runtime=grown(1440),
    params:
        settings=asked(lambda job: job.experiment.cover_settings(job.seed)),
    shell:
        "python -m pairflow.steps.cover --settings {params.settings:q} --threads {threads}"
        " --resume results/{wildcards.experiment}/seed{wildcards.seed}/resume/cover"
        " --tokens {input.tokens:q} --out {output.metrics:q} > {log:q} 2>&1"

# Token rows -> pairs (x0, x1): Algorithm 1 or independent sources.
rule pair:
    input:
        tokens="results/{experiment}/data/train.parquet",
    output:
        pairs="results/{experiment}/seed{seed}/pairs/{coupling}.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/pair-{coupling}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/pair-{coupling}.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: workflow.cores or 8
    resources:
        gpu=0,
        mem_mb=4000,
        runtime=240,
    params:
        settings=pair_settings,
    shell:
        "python -m pairflow.steps.pair --settings {params.settings:q} --threads {threads}"
        " --tokens {input.tokens:q} --out {output.pairs:q} > {log:q} 2>&1"

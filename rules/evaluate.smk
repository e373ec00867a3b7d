# Samples of molecules -> metric rows.
rule evaluate:
    input:
        samples="results/{experiment}/seed{seed}/samples/{method}/{evaluation}/nfe{nfe}.parquet",
        vocabulary="results/{experiment}/data/vocabulary.json",
        smiles="results/{experiment}/data/smiles.parquet",
    output:
        metrics="results/{experiment}/seed{seed}/metrics/{method}/{evaluation}/nfe{nfe}.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}.tsv"
    wildcard_constraints:
        experiment=only("molecules"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=60,
    shell:
        "python -m pairflow.steps.evaluate --evaluation {wildcards.evaluation:q} --samples {input.samples:q}"
        " --vocabulary {input.vocabulary:q} --smiles {input.smiles:q} --out {output.metrics:q} > {log:q} 2>&1"

# Raw molecules -> token rows, vocabulary, canonical SMILES, rejected rows.
rule preprocess:
    output:
        train="results/{experiment}/data/train.parquet",
        validation="results/{experiment}/data/validation.parquet",
        vocabulary="results/{experiment}/data/vocabulary.json",
        smiles="results/{experiment}/data/smiles.parquet",
        rejected="results/{experiment}/data/rejected.parquet",
    log:
        "results/{experiment}/logs/preprocess.log",
    benchmark:
        "results/{experiment}/benchmarks/preprocess.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        settings=data_settings,
    shell:
        "python -m pairflow.steps.preprocess --settings {params.settings:q}"
        " --train {output.train:q} --validation {output.validation:q} --vocabulary {output.vocabulary:q}"
        " --smiles {output.smiles:q} --rejected {output.rejected:q} > {log:q} 2>&1"

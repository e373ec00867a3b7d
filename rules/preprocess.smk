# Raw molecules -> token rows, vocabulary, canonical SMILES and their hashes, rejected rows.
rule preprocess:
    input:
        unpack(parent_vocabulary),
        raw=raw_file,
    output:
        train="results/{experiment}/data/train.parquet",
        validation="results/{experiment}/data/validation.parquet",
        vocabulary="results/{experiment}/data/vocabulary.json",
        smiles="results/{experiment}/data/smiles.parquet",
        known="results/{experiment}/data/known.parquet",
        rejected="results/{experiment}/data/rejected.parquet",
    log:
        "results/{experiment}/logs/preprocess.log",
    benchmark:
        "results/{experiment}/benchmarks/preprocess.tsv"
    wildcard_constraints:
        experiment=only("molecules"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        # 1.4 kB a molecule, of which a packed file takes 12 bytes
        mem_mb=lambda wildcards, input, attempt: attempt * int(4000 + 120 * input.size_mb),
        runtime=grown(60),
    params:
        settings=data_settings,
        parent=starts_from("--parent-vocabulary", "parent_vocabulary"),
    shell:
        "python -m pairflow.steps.preprocess --settings {params.settings:q} {params.parent:q}"
        " --train {output.train:q} --validation {output.validation:q} --vocabulary {output.vocabulary:q}"
        " --smiles {output.smiles:q} --known {output.known:q} --rejected {output.rejected:q} > {log:q} 2>&1"


# Raw images -> token rows with labels, and a vocabulary like that of molecules (no molecule is known). The validation
# rows are the published test set, if there is one.
rule preprocess_images:
    output:
        train="results/{experiment}/data/train.parquet",
        validation="results/{experiment}/data/validation.parquet",
        vocabulary="results/{experiment}/data/vocabulary.json",
        known="results/{experiment}/data/known.parquet",
    log:
        "results/{experiment}/logs/preprocess.log",
    benchmark:
        "results/{experiment}/benchmarks/preprocess.tsv"
    wildcard_constraints:
        experiment=only("images"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=grown(8000),
        runtime=grown(60),
    params:
        settings=data_settings,
        folder=own_folder,
    shell:
        "python -m pairflow.steps.preprocess_images --settings {params.settings:q}"
        " --train {output.train:q} --validation {output.validation:q} --vocabulary {output.vocabulary:q}"
        " --known {output.known:q} > {log:q} 2>&1"


# Text -> token rows for training, validation and the judge of samples, the tokeniser, rejected pieces.
rule preprocess_text:
    input:
        unpack(parent_vocabulary),
        raw=raw_file,
    output:
        train="results/{experiment}/data/train.parquet",
        validation="results/{experiment}/data/validation.parquet",
        vocabulary="results/{experiment}/data/vocabulary.json",
        known="results/{experiment}/data/known.parquet",
        judge="results/{experiment}/data/judge.parquet",
        rejected="results/{experiment}/data/rejected.parquet",
    log:
        "results/{experiment}/logs/preprocess.log",
    benchmark:
        "results/{experiment}/benchmarks/preprocess.tsv"
    wildcard_constraints:
        experiment=only("text"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=grown(8000),
        runtime=grown(120),
    params:
        settings=data_settings,
        parent=starts_from("--parent-vocabulary", "parent_vocabulary"),
        folder=own_folder,
    shell:
        "python -m pairflow.steps.preprocess_text --settings {params.settings:q} {params.parent:q}"
        " --train {output.train:q} --validation {output.validation:q} --judge {output.judge:q}"
        " --vocabulary {output.vocabulary:q} --known {output.known:q} --rejected {output.rejected:q} > {log:q} 2>&1"


# Token rows of a user's own -> the same, checked and split, and a vocabulary that says N and K.
rule preprocess_tokens:
    input:
        raw=raw_file,
    output:
        train="results/{experiment}/data/train.parquet",
        validation="results/{experiment}/data/validation.parquet",
        vocabulary="results/{experiment}/data/vocabulary.json",
        known="results/{experiment}/data/known.parquet",
    log:
        "results/{experiment}/logs/preprocess.log",
    benchmark:
        "results/{experiment}/benchmarks/preprocess.tsv"
    wildcard_constraints:
        experiment=only("tokens"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, input, attempt: attempt * int(2000 + 4 * input.size_mb),
        runtime=grown(60),
    params:
        settings=data_settings,
    shell:
        "python -m pairflow.steps.preprocess_tokens --settings {params.settings:q}"
        " --train {output.train:q} --validation {output.validation:q} --vocabulary {output.vocabulary:q}"
        " --known {output.known:q} > {log:q} 2>&1"


# Vectors, drawn at random or a user's own -> those for training, those that are held out, and a vocabulary that says d.
rule preprocess_vectors:
    input:
        raw=raw_file,
    output:
        train="results/{experiment}/data/train.parquet",
        validation="results/{experiment}/data/validation.parquet",
        vocabulary="results/{experiment}/data/vocabulary.json",
        known="results/{experiment}/data/known.parquet",
    log:
        "results/{experiment}/logs/preprocess.log",
    benchmark:
        "results/{experiment}/benchmarks/preprocess.tsv"
    wildcard_constraints:
        experiment=only("vectors"),
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=lambda wildcards, input, attempt: attempt * int(2000 + 4 * input.size_mb),
        runtime=grown(60),
    params:
        settings=data_settings,
    shell:
        "python -m pairflow.steps.preprocess_vectors --settings {params.settings:q}"
        " --train {output.train:q} --validation {output.validation:q} --vocabulary {output.vocabulary:q}"
        " --known {output.known:q} > {log:q} 2>&1"

# Token rows or pairs -> the denoiser of a base method. One thread each on a CPU: several trainings run side by side.
# With gpu=2 or more, a profile's doing, torchrun starts a process per GPU: docs/several_gpus.md.
rule train:
    input:
        data=training_data,
        validation="results/{experiment}/data/validation.parquet",
        vocabulary="results/{experiment}/data/vocabulary.json",
        smiles="results/{experiment}/data/smiles.parquet",
    output:
        model="results/{experiment}/seed{seed}/models/{base}/model.safetensors",
        description="results/{experiment}/seed{seed}/models/{base}/model.json",
        log="results/{experiment}/seed{seed}/models/{base}/log.parquet",
        vocabulary="results/{experiment}/seed{seed}/models/{base}/vocabulary.json",
        known="results/{experiment}/seed{seed}/models/{base}/known.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/train-{base}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/train-{base}.tsv"
    wildcard_constraints:
        experiment=only("molecules"),
    priority: 1  # before the sampling of what is trained: trainings are the long way
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        gpu=gpu,
        micro_batch=0,
        mem_mb=grown(6000),
        runtime=grown(2880),
    params:
        settings=settings_of("train_settings", "base", "seed"),
        carried="--vocabulary results/{experiment}/data/vocabulary.json --smiles results/{experiment}/data/smiles.parquet",
    shell:
        "python -m $([ {resources.gpu} -gt 1 ] && echo pairflow.runtime.torchrun {resources.gpu}) pairflow.steps.train"
        " --settings {params.settings:q} --threads {threads} --micro-batch {resources.micro_batch}"
        " --data {input.data:q} --validation {input.validation:q} {params.carried}"
        " --resume results/{wildcards.experiment}/seed{wildcards.seed}/resume/train"
        " --model {output.model:q} --description {output.description:q} --log {output.log:q} > {log:q} 2>&1"


# A model of images carries neither a vocabulary nor what it knows.
use rule train as train_images with:
    input:
        data=training_data,
        validation="results/{experiment}/data/validation.parquet",
    output:
        model="results/{experiment}/seed{seed}/models/{base}/model.safetensors",
        description="results/{experiment}/seed{seed}/models/{base}/model.json",
        log="results/{experiment}/seed{seed}/models/{base}/log.parquet",
    wildcard_constraints:
        experiment=only("images"),
    params:
        settings=settings_of("train_settings", "base", "seed"),
        carried="",

stored_data = asked(lambda job: paths.stored_data(job.root, job.experiment))


# Token rows or pairs -> the model of a base method. On a CPU the trainings that may run at once share the cores.
# If a profile sets gpu=2 or more, the launcher starts a process per GPU: docs/several_gpus.md.
rule train:
    input:
        unpack(stored_data),
        unpack(asked(lambda job: paths.condition_labels(job.root, job.experiment))),
        unpack(parent_files),
        data=asked(lambda job: paths.training_data(job.root, job.seed, job.base)),
        validation="results/{experiment}/data/validation.parquet",
    output:
        model="results/{experiment}/seed{seed}/models/{base}/model.safetensors",
        description="results/{experiment}/seed{seed}/models/{base}/model.json",
        log="results/{experiment}/seed{seed}/models/{base}/log.parquet",
        vocabulary="results/{experiment}/seed{seed}/models/{base}/vocabulary.json",
    log:
        "results/{experiment}/logs/seed{seed}/train-{base}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/train-{base}.tsv"
    priority: 1  # trainings take longest, so that they start before samplings
    conda:
        "../envs/cpu.yaml"
    threads: share("train")
    resources:
        gpu=gpu,
        micro_batch=0,
        mem_mb=memory("train", gpu, 6000),
        runtime=grown(2880),
    params:
        settings=asked(lambda job: job.experiment.train_settings(job.base, job.seed)),
        stored=lambda wildcards, input: options(input, stored_data(wildcards)),
        parent=starts_from("--from", "parent"),
    shell:
        "python -m pairflow.runtime.launch {resources.gpu} pairflow.steps.train"
        " --settings {params.settings:q} --threads {threads} --micro-batch {resources.micro_batch}"
        " --data {input.data:q} --validation {input.validation:q}"
        " {params.stored:q}"
        " --labels results/{wildcards.experiment}/data/train.parquet {params.parent:q}"
        " --resume results/{wildcards.experiment}/seed{wildcards.seed}/resume/train"
        " --model {output.model:q} --description {output.description:q} --log {output.log:q} > {log:q} 2>&1"

# A model -> samples at one number of steps.
rule sample:
    input:
        model="results/{experiment}/seed{seed}/models/{method}/model.safetensors",
        description="results/{experiment}/seed{seed}/models/{method}/model.json",
    output:
        samples="results/{experiment}/seed{seed}/samples/{method}/{evaluation}/nfe{nfe}.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/sample-{method}-{evaluation}-nfe{nfe}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/sample-{method}-{evaluation}-nfe{nfe}.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: share("sample")
    resources:
        gpu=gpu,
        mem_mb=memory("sample", gpu),
        runtime=grown(240),
    params:
        settings=asked(lambda job: job.experiment.sample_settings(job.evaluation, job.nfe, job.seed)),
    shell:
        "python -m pairflow.steps.sample --settings {params.settings:q} --threads {threads}"
        " --resume results/{wildcards.experiment}/seed{wildcards.seed}/resume/sample"
        " --model $(dirname {input.model:q}) --out {output.samples:q} > {log:q} 2>&1"


# The model that trainings start from -> samples at an evaluation's largest number of steps, before any training.
use rule sample as sample_start with:
    input:
        unpack(start_model),
    output:
        samples="results/{experiment}/seed{seed}/start/{evaluation}.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/sample-start-{evaluation}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/sample-start-{evaluation}.tsv"
    threads: share("sample_start")
    params:
        settings=asked(lambda job: job.kind.floor.start_settings(job.experiment, job.evaluation, job.seed)),

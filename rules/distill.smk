# A model -> its own pairs (x0, x1); a model -> a distilled model. The methods' names say which round follows which.
rule teach:
    input:
        model="results/{experiment}/seed{seed}/models/{parent}/model.safetensors",
        description="results/{experiment}/seed{seed}/models/{parent}/model.json",
    output:
        pairs="results/{experiment}/seed{seed}/pairs/{parent}+{distillation}.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/teach-{parent}+{distillation}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/teach-{parent}+{distillation}.tsv"
    wildcard_constraints:
        distillation="|".join(name for name, settings in DISTILLATIONS.items() if settings.on_pairs),
    priority: 1
    conda:
        "../envs/cpu.yaml"
    threads: share("teach")
    resources:
        gpu=gpu,
        mem_mb=memory("teach", gpu),
        runtime=grown(480),
    params:
        settings=asked(lambda job: job.experiment.teach_settings(job.distilled, job.seed)),
    shell:
        "python -m pairflow.steps.teach --settings {params.settings:q} --threads {threads}"
        " --resume results/{wildcards.experiment}/seed{wildcards.seed}/resume/teach"
        " --model $(dirname {input.model:q}) --out {output.pairs:q} > {log:q} 2>&1"


rule distill:
    input:
        parent="results/{experiment}/seed{seed}/models/{parent}/model.safetensors",
        parent_description="results/{experiment}/seed{seed}/models/{parent}/model.json",
        parent_vocabulary="results/{experiment}/seed{seed}/models/{parent}/vocabulary.json",
        data=asked(lambda job: paths.training_data(job.root, job.seed, job.distilled)),
        validation="results/{experiment}/data/validation.parquet",
    output:
        model="results/{experiment}/seed{seed}/models/{parent}+{distillation}/model.safetensors",
        description="results/{experiment}/seed{seed}/models/{parent}+{distillation}/model.json",
        log="results/{experiment}/seed{seed}/models/{parent}+{distillation}/log.parquet",
        vocabulary="results/{experiment}/seed{seed}/models/{parent}+{distillation}/vocabulary.json",
    log:
        "results/{experiment}/logs/seed{seed}/distill-{parent}+{distillation}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/distill-{parent}+{distillation}.tsv"
    priority: 1
    conda:
        "../envs/cpu.yaml"
    threads: share("distill")
    resources:
        gpu=gpu,
        micro_batch=0,
        mem_mb=memory("distill", gpu, 6000),
        runtime=grown(1440),
    params:
        settings=asked(lambda job: job.experiment.distill_settings(job.distilled, job.seed)),
    shell:
        "python -m pairflow.runtime.launch {resources.gpu} pairflow.steps.distill"
        " --settings {params.settings:q} --threads {threads} --micro-batch {resources.micro_batch}"
        " --parent $(dirname {input.parent:q}) --data {input.data:q} --validation {input.validation:q}"
        " --resume results/{wildcards.experiment}/seed{wildcards.seed}/resume/distill"
        " --model {output.model:q} --description {output.description:q} --log {output.log:q} > {log:q} 2>&1"

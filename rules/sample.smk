# A model -> samples, for all numbers of steps of an evaluation or, with `split_nfe`, for one.
for end, experiments, evaluations, numbers, log_end in nfe_jobs():

    rule:
        name:
            f"sample{end}"
        input:
            model="results/{experiment}/seed{seed}/models/{method}/model.safetensors",
            description="results/{experiment}/seed{seed}/models/{method}/model.json",
        output:
            samples=expand(
                "results/{{experiment}}/seed{{seed}}/samples/{{method}}/{{evaluation}}/nfe{nfe}.parquet",
                nfe=numbers,
            ),
        log:
            f"results/{{experiment}}/logs/seed{{seed}}/sample-{{method}}-{{evaluation}}{log_end}.log",
        benchmark:
            f"results/{{experiment}}/benchmarks/seed{{seed}}/sample-{{method}}-{{evaluation}}{log_end}.tsv"
        wildcard_constraints:
            experiment=experiments,
            evaluation=evaluations,
        conda:
            "../envs/cpu.yaml"
        threads: 1
        resources:
            gpu=gpu,
            mem_mb=grown(4000),
            runtime=grown(240),
        params:
            settings=sample_settings,
        shell:
            "python -m pairflow.runtime.several pairflow.steps.sample --settings {params.settings:q} --threads {threads}"
            " --resume results/{wildcards.experiment}/seed{wildcards.seed}/resume/sample"
            " --model $(dirname {input.model:q})"
            + for_each(numbers, "--nfe NFE --out {output.samples[#]:q}")
            + " > {log:q} 2>&1"

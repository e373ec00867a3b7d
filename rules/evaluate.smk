# Samples -> metric rows, and histograms of their properties for kinds of data with any; real data -> metric rows of real
# data in the place of samples, at the numbers of an evaluation. A rule for each kind.
for kind in map(load_kind, KINDS):

    rule:
        name:
            f"evaluate_{kind.name}"
        input:
            unpack(asked(lambda job: job.kind.reference.list_files(job.root, job.experiment, job.comparison))),
            samples="results/{experiment}/seed{seed}/samples/{method}/{evaluation}/nfe{nfe}.parquet",
        output:
            **{
                name: f"results/{{experiment}}/seed{{seed}}/{name}/{{method}}/{{evaluation}}/nfe{{nfe}}{{comparison}}.parquet"
                for name in kind.reference.outputs
            },
        log:
            "results/{experiment}/logs/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}{comparison}.log",
        benchmark:
            "results/{experiment}/benchmarks/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}{comparison}.tsv"
        wildcard_constraints:
            experiment=only(kind.name),
        conda:
            "../envs/cpu.yaml"
        threads: share("evaluate", measuring_gpu)
        resources:
            gpu=measuring_gpu,
            mem_mb=memory("evaluate", measuring_gpu, measuring("memory_mb"), f"evaluate_{kind.name}"),
            runtime=measuring("minutes"),
        params:
            kind=kind.name,
            settings=asked(lambda job: job.kind.reference.settings_of(job.experiment, job.comparison)),
            real=lambda wildcards, input: options(input, job_of(wildcards).kind.reference.files._fields),
            further=lambda wildcards, output: options(output, {*output.keys()} - {"metrics"}),
        shell:
            "python -m pairflow.steps.evaluate {params.kind:q} --settings {params.settings:q} --threads {threads}"
            " --evaluation {wildcards.evaluation:q} --samples {input.samples:q} {params.real:q}"
            " --out {output.metrics:q} {params.further:q} > {log:q} 2>&1"

    if kind.floor:

        rule:
            name:
                f"floor_{kind.name}"
            input:
                unpack(
                    asked(
                        lambda job: job.kind.floor.list_files(
                            job.root, job.experiment, job.evaluation, job.comparison
                        )
                    )
                ),
            output:
                metrics="results/{experiment}/reference/floor-{evaluation}{comparison}.parquet",
            log:
                "results/{experiment}/logs/floor-{evaluation}{comparison}.log",
            benchmark:
                "results/{experiment}/benchmarks/floor-{evaluation}{comparison}.tsv"
            wildcard_constraints:
                experiment=only(kind.name),
            conda:
                "../envs/cpu.yaml"
            resources:
                gpu=measuring_gpu,
                mem_mb=measuring("memory_mb"),
                runtime=measuring("minutes"),
            params:
                kind=kind.name,
                settings=asked(
                    lambda job: job.kind.floor.settings_of(job.experiment, job.evaluation, job.comparison)
                ),
                real=lambda wildcards, input: options(input, job_of(wildcards).kind.floor.files._fields),
            shell:
                "python -m pairflow.steps.floor {params.kind:q} --settings {params.settings:q} --threads {threads}"
                " --evaluation {wildcards.evaluation:q} {params.real:q} --out {output.metrics:q} > {log:q} 2>&1"

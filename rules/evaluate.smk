# Samples -> metric rows, and histograms of their properties for kinds of data with any; real data -> metric rows of real
# data in the place of samples, at the numbers of an evaluation. A rule for each kind.
def real_files(wildcards):
    """What samples are compared with."""
    return kind_for(wildcards).real_files(
        root_of(wildcards), experiment_of(wildcards), comparison_of(wildcards)
    )


def real_options(wildcards, input):
    """The same as options of the step."""
    return options(input, kind_for(wildcards).real._fields)


def comparison_settings(wildcards):
    kind, experiment = kind_for(wildcards), experiment_of(wildcards)
    return as_json(kind.comparison_settings(experiment, comparison_of(wildcards)))


def floor_settings(wildcards):
    kind, experiment = kind_for(wildcards), experiment_of(wildcards)
    return as_json(kind.floor_settings(experiment, wildcards.evaluation, comparison_of(wildcards)))


def measuring(need):
    """A resource of measuring: what the kind of data needs, times the attempt."""
    return lambda wildcards, attempt: attempt * getattr(
        kind_for(wildcards).measuring(experiment_of(wildcards)), need
    )


def measuring_gpu(wildcards):
    return gpu(wildcards) if kind_for(wildcards).measuring(experiment_of(wildcards)).gpu else 0


for kind in map(load_kind, KINDS):

    rule:
        name:
            f"evaluate_{kind.name}"
        input:
            unpack(real_files),
            samples="results/{experiment}/seed{seed}/samples/{method}/{evaluation}/nfe{nfe}.parquet",
        output:
            **{
                name: f"results/{{experiment}}/seed{{seed}}/{name}/{{method}}/{{evaluation}}/nfe{{nfe}}{{comparison}}.parquet"
                for name in kind.measured
            },
        log:
            "results/{experiment}/logs/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}{comparison}.log",
        benchmark:
            "results/{experiment}/benchmarks/seed{seed}/evaluate-{method}-{evaluation}-nfe{nfe}{comparison}.tsv"
        wildcard_constraints:
            experiment=only(kind.name),
        conda:
            "../envs/cpu.yaml"
        threads: 1
        resources:
            gpu=measuring_gpu,
            mem_mb=measuring("memory_mb"),
            runtime=measuring("minutes"),
        params:
            kind=kind.name,
            settings=comparison_settings,
            real=real_options,
            further=lambda wildcards, output: options(output, {*output.keys()} - {"metrics"}),
        shell:
            "python -m pairflow.steps.evaluate {params.kind} --settings {params.settings:q} --threads {threads}"
            " --evaluation {wildcards.evaluation:q} --samples {input.samples:q} {params.real:q}"
            " --out {output.metrics:q} {params.further:q} > {log:q} 2>&1"

    if kind.floor:

        rule:
            name:
                f"floor_{kind.name}"
            input:
                unpack(real_files),
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
            threads: 1
            resources:
                gpu=measuring_gpu,
                mem_mb=measuring("memory_mb"),
                runtime=measuring("minutes"),
            params:
                kind=kind.name,
                settings=floor_settings,
                real=real_options,
            shell:
                "python -m pairflow.steps.floor {params.kind} --settings {params.settings:q} --threads {threads}"
                " --evaluation {wildcards.evaluation:q} {params.real:q} --out {output.metrics:q} > {log:q} 2>&1"

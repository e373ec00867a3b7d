# Raw data -> rows for training and held-out ones, a vocabulary, and what else the kind of data has: a rule for each kind.
# The rules that one kind has besides are in a file of its name.
for kind in map(load_kind, KINDS):

    rule:
        name:
            f"preprocess_{kind.name}"
        input:
            unpack(asked(lambda job: dated(paths.parent_vocabulary(job.root, job.experiment)))),
            raw=asked(lambda job: job.experiment.data.file or []),
            held_out=asked(lambda job: job.experiment.data.held_out_file or []),
        output:
            **{Path(file).stem: f"results/{{experiment}}/data/{file}" for file in kind.settings.prepared},
        log:
            "results/{experiment}/logs/preprocess.log",
        benchmark:
            "results/{experiment}/benchmarks/preprocess.tsv"
        wildcard_constraints:
            experiment=only(kind.name),
        conda:
            "../envs/cpu.yaml"
        threads: CORES if kind.costs.takes_long else 1
        resources:
            mem_mb=preparing("memory_mb"),
            runtime=preparing("minutes"),
        params:
            kind=kind.name,
            settings=asked(lambda job: job.experiment.data),
            folder=asked(lambda job: own_files.folder_digest(job.experiment.data)),
            parent=starts_from("--parent-vocabulary", "parent_vocabulary"),
            files=lambda wildcards, output: options(output),
        shell:
            "python -m pairflow.steps.preprocess {params.kind:q} --settings {params.settings:q} {params.parent:q}"
            " {params.files:q} > {log:q} 2>&1"

    if Path(REPOSITORY, "rules", f"{kind.name}.smk").exists():

        include: f"{kind.name}.smk"

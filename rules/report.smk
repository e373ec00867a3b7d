# Everything of an experiment -> metrics.parquet, timings.parquet, the page, and its figures as files.
# `snakemake --report report.zip results/<experiment>/report.html` shows the outputs marked with report(), and captions.
rule report:
    input:
        unpack(asked(lambda job: graph.report_inputs(job.root, job.experiment))),
    output:
        # The last report stays until the next is complete: files to update are not deleted before.
        metrics=report(
            update("results/{experiment}/metrics.parquet"),
            caption="captions/metrics.rst",
            category="{experiment}",
            labels={"kind": "table", "shows": "all metric rows"},
        ),
        timings=update("results/{experiment}/timings.parquet"),
        page=report(
            update("results/{experiment}/report.html"),
            caption="captions/report.rst",
            category="{experiment}",
            labels={"kind": "page", "shows": "everything, explained"},
        ),
        figures=report(
            directory("results/{experiment}/figures"),
            patterns=["{name}.svg", "{name}.png"],
            caption="captions/figures.rst",
            category="{experiment}",
            subcategory="figures",
            labels={"kind": "figure", "shows": "{name}"},
        ),
    log:
        "results/{experiment}/logs/report.log",
    benchmark:
        "results/{experiment}/benchmarks/report.tsv"
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=memory("report"),
        runtime=grown(60),
    params:
        settings=asked(lambda job: job.experiment),
        root="results/{experiment}",
    shell:
        "python -m pairflow.steps.report --settings {params.settings:q} --root {params.root:q}"
        " --metrics {output.metrics:q} --timings {output.timings:q} --figures {output.figures:q} --out {output.page:q}"
        " > {log:q} 2>&1"


# The page beside the paper's numbers is of the repository: a project that `pairflow init` has made lacks it, and so
# does a configuration with an experiment of that name.
if Path(REPOSITORY, "benchmarks", "paper").is_dir() and "paper" not in EXPERIMENTS:

    include: "paper.smk"

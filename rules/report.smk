# Everything of an experiment -> metrics.parquet, timings.parquet and the page.
rule report:
    input:
        unpack(report_inputs),
    output:
        metrics="results/{experiment}/metrics.parquet",
        timings="results/{experiment}/timings.parquet",
        page="results/{experiment}/report.html",
    log:
        "results/{experiment}/logs/report.log",
    benchmark:
        "results/{experiment}/benchmarks/report.tsv"
    conda:
        "../envs/cpu.yaml"
    threads: 1
    resources:
        mem_mb=grown(4000),
        runtime=grown(60),
    params:
        settings=experiment_settings,
        root="results/{experiment}",
    shell:
        "python -m pairflow.steps.report --settings {params.settings:q} --root {params.root:q}"
        " --metrics {output.metrics:q} --timings {output.timings:q} --out {output.page:q} > {log:q} 2>&1"

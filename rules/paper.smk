# Finished experiments and the paper's printed tables -> the page on the paper. It runs no experiment: their files are
# in params, not in input, where Snakemake would bring them up to date first.
sys.path.append(str(REPOSITORY))  # where an installed pairflow runs the workflow of this checkout

from benchmarks.paper.settings import choose_experiments, hash_finished

PAPER = choose_experiments(EXPERIMENTS)


ruleorder: paper > report


rule paper:
    output:
        page=report(
            "results/paper/report.html",
            caption="captions/paper.rst",
            category="paper",
            labels={"kind": "page", "shows": "printed and measured"},
        ),
        values=report(
            "results/paper/values.parquet",
            caption="captions/values.rst",
            category="paper",
            labels={"kind": "table", "shows": "all values"},
        ),
        tables=report(
            directory("results/paper/tables"),
            patterns=["{name}.csv"],
            caption="captions/tables.rst",
            category="paper",
            subcategory="tables",
            labels={"kind": "table", "shows": "{name}"},
        ),
    log:
        "results/paper/logs/paper.log",
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=grown(2000),
        runtime=grown(10),
    params:
        settings=as_json(PAPER),
        finished=lambda wildcards: hash_finished(Path("results"), PAPER.experiments),
    shell:
        "python -m benchmarks.paper --settings {params.settings:q} --results results"
        " --tables {output.tables:q} --values {output.values:q} --out {output.page:q} > {log:q} 2>&1"

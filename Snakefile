# From raw data to results/<experiment>/report.html. Every scientific value is in workflow_config.yaml.
from pathlib import Path

from snakemake.utils import min_version

min_version("9.10")


# The working directory's own (`--directory`), or else the one beside this file.
OWN = Path("workflow_config.yaml")
BESIDE = Path(workflow.current_basedir.get_path_or_uri(secret_free=True), OWN)


configfile: str(OWN if OWN.exists() else BESIDE)


include: "rules/common.smk"
include: "rules/preprocess.smk"
include: "rules/pair.smk"
include: "rules/couple.smk"
include: "rules/train.smk"
include: "rules/distill.smk"
include: "rules/sample.smk"
include: "rules/evaluate.smk"
include: "rules/correlate.smk"
include: "rules/report.smk"


rule all:
    default_target: True
    input:
        expand("results/{experiment}/report.html", experiment="demo"),

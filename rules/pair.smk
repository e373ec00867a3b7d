# Token rows -> pairs (x0, x1): Algorithm 1 or independent sources, in as many jobs as the profile says.
PAIR_SHARDS = CONFIGURATION.pair_shards
# Couplings that neither `adopt` nor `potentials` makes; a name that is not known counts as one.
ADOPTED, BALANCED = ("|".join(PAIRINGS[rule]) for rule in ("adopt", "potentials"))
COMPUTED = rf"(?!(?:{ADOPTED}|{BALANCED})\b)[a-z0-9-]+"


rule pair:
    input:
        tokens="results/{experiment}/data/train.parquet",
    output:
        pairs="results/{experiment}/seed{seed}/pairs/{base}.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/pair-{base}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/pair-{base}.tsv"
    wildcard_constraints:
        base=COMPUTED,
    priority: 10  # first of all, as it wants every core: trainings, one core each, then run side by side
    conda:
        "../envs/cpu.yaml"
    threads: CORES
    resources:
        gpu=gpu,
        mem_mb=memory("pair", gpu),
        runtime=grown(240),
    params:
        settings=asked(lambda job: job.experiment.pair_settings(job.base, job.seed)),
        shard=[],
    shell:
        "python -m pairflow.steps.pair --settings {params.settings:q} --threads {threads} {params.shard:q}"
        " --resume results/{wildcards.experiment}/seed{wildcards.seed}/resume/pair"
        " --tokens {input.tokens:q} --out {output.pairs:q} > {log:q} 2>&1"


if PAIR_SHARDS > 1:

    ruleorder: gather > pair

    use rule pair as pair_shard with:
        output:
            pairs=temp("results/{experiment}/seed{seed}/shards/{base}/{shard}-of-{shards}.parquet"),
            costs=temp(
                "results/{experiment}/seed{seed}/shards/{base}/{shard}-of-{shards}.parquet.provenance.json"
            ),
        log:
            "results/{experiment}/logs/seed{seed}/pair-{base}-{shard}-of-{shards}.log",
        benchmark:
            "results/{experiment}/benchmarks/seed{seed}/pair-{base}-{shard}-of-{shards}.tsv"
        priority: 0
        threads: 2
        params:
            settings=asked(lambda job: job.experiment.pair_settings(job.base, job.seed)),
            shard=["--shard", "{shard}/{shards}"],

    rule gather:
        input:
            shards=expand(
                "results/{{experiment}}/seed{{seed}}/shards/{{base}}/{shard}-of-{shards}.parquet",
                shard=range(1, PAIR_SHARDS + 1),
                shards=PAIR_SHARDS,
            ),
            costs=expand(
                "results/{{experiment}}/seed{{seed}}/shards/{{base}}/{shard}-of-{shards}.parquet.provenance.json",
                shard=range(1, PAIR_SHARDS + 1),
                shards=PAIR_SHARDS,
            ),
        output:
            pairs="results/{experiment}/seed{seed}/pairs/{base}.parquet",
        log:
            "results/{experiment}/logs/seed{seed}/pair-{base}.log",
        benchmark:
            "results/{experiment}/benchmarks/seed{seed}/pair-{base}.tsv"
        wildcard_constraints:
            base=COMPUTED,
        conda:
            "../envs/cpu.yaml"
        resources:
            mem_mb=memory("pair"),
            runtime=grown(60),
        params:
            settings=asked(lambda job: job.experiment.pair_settings(job.base, job.seed)),
            shard=[],  # the parameters of `pair`, so that another number of shards makes nothing again
        shell:
            "python -m pairflow.steps.gather {input.shards:q} --out {output.pairs:q} > {log:q} 2>&1"


# Rows -> pairs with potentials: semidiscrete transport. The CPU leads tokens, whatever the machine has.
rule potentials:
    input:
        tokens="results/{experiment}/data/train.parquet",
    output:
        pairs="results/{experiment}/seed{seed}/pairs/{base}.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/potentials-{base}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/potentials-{base}.tsv"
    wildcard_constraints:
        base=BALANCED,
    priority: 10
    conda:
        "../envs/cpu.yaml"
    threads: CORES
    resources:
        gpu=potentials_gpu,
        mem_mb=memory("potentials", potentials_gpu),
        runtime=grown(240),
    params:
        settings=asked(lambda job: job.experiment.pair_settings(job.base, job.seed)),
    shell:
        "python -m pairflow.steps.potentials --settings {params.settings:q} --threads {threads}"
        " --resume results/{wildcards.experiment}/seed{wildcards.seed}/resume/potentials"
        " --tokens {input.tokens:q} --out {output.pairs:q} > {log:q} 2>&1"


# A user's own pairs -> the same, checked against the data.
rule adopt:
    input:
        tokens="results/{experiment}/data/train.parquet",
        validation="results/{experiment}/data/validation.parquet",
        user_pairs=asked(lambda job: job.experiment.own_pairs(job.base)),
    output:
        pairs="results/{experiment}/seed{seed}/pairs/{base}.parquet",
    log:
        "results/{experiment}/logs/seed{seed}/adopt-{base}.log",
    benchmark:
        "results/{experiment}/benchmarks/seed{seed}/adopt-{base}.tsv"
    wildcard_constraints:
        base=rf"(?:{ADOPTED})\b[a-z0-9-]*",
    conda:
        "../envs/cpu.yaml"
    resources:
        mem_mb=memory("adopt"),
        runtime=grown(60),
    params:
        settings=asked(lambda job: job.experiment.pair_settings(job.base, job.seed)),
    shell:
        "python -m pairflow.steps.adopt --settings {params.settings:q} --user-pairs {input.user_pairs:q}"
        " --tokens {input.tokens:q} --validation {input.validation:q} --out {output.pairs:q} > {log:q} 2>&1"

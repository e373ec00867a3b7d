# Token rows -> pairs (x0, x1): Algorithm 1 or independent sources, in as many jobs as the profile says.
PAIR_SHARDS = CONFIGURATION.pair_shards

if PAIR_SHARDS == 1:

    rule pair:
        input:
            tokens="results/{experiment}/data/train.parquet",
        output:
            pairs="results/{experiment}/seed{seed}/pairs/{base}.parquet",
        log:
            "results/{experiment}/logs/seed{seed}/pair-{base}.log",
        benchmark:
            "results/{experiment}/benchmarks/seed{seed}/pair-{base}.tsv"
        priority: 10  # first of all, as it wants every core: trainings, one core each, then run side by side
        conda:
            "../envs/cpu.yaml"
        threads: CORES
        resources:
            gpu=gpu,
            mem_mb=grown(4000),
            runtime=grown(240),
        params:
            settings=settings_of("pair_settings", "base", "seed"),
        shell:
            "python -m pairflow.steps.pair --settings {params.settings:q} --threads {threads}"
            " --resume results/{wildcards.experiment}/seed{wildcards.seed}/resume/pair --tokens {input.tokens:q} --out {output.pairs:q} > {log:q} 2>&1"

else:

    rule pair_shard:
        input:
            tokens="results/{experiment}/data/train.parquet",
        output:
            shard=temp("results/{experiment}/seed{seed}/shards/{base}/{shard}-of-{shards}.parquet"),
            costs=temp(
                "results/{experiment}/seed{seed}/shards/{base}/{shard}-of-{shards}.parquet.provenance.json"
            ),
        log:
            "results/{experiment}/logs/seed{seed}/pair-{base}-{shard}-of-{shards}.log",
        benchmark:
            "results/{experiment}/benchmarks/seed{seed}/pair-{base}-{shard}-of-{shards}.tsv"
        conda:
            "../envs/cpu.yaml"
        threads: 2
        resources:
            gpu=gpu,
            mem_mb=grown(4000),
            runtime=grown(240),
        params:
            settings=settings_of("pair_settings", "base", "seed"),
        shell:
            "python -m pairflow.steps.pair --settings {params.settings:q} --threads {threads}"
            " --shard {wildcards.shard}/{wildcards.shards} --resume results/{wildcards.experiment}/seed{wildcards.seed}/resume/pair"
            " --tokens {input.tokens:q} --out {output.shard:q} > {log:q} 2>&1"

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
        conda:
            "../envs/cpu.yaml"
        threads: 1
        resources:
            mem_mb=grown(4000),
            runtime=grown(60),
        params:
            settings=settings_of("pair_settings", "base", "seed"),
        shell:
            "python -m pairflow.steps.gather {input.shards:q} --out {output.pairs:q} > {log:q} 2>&1"

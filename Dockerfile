# pairflow on a CPU. Not built in CI: please report what does not work.
#
#   docker build -t pairflow .
#   mkdir my_project
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD/my_project:/project" \
#     pairflow pairflow init .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD/my_project:/project" \
#     pairflow pairflow run demo
FROM python:3.12-slim-bookworm

# RDKit draws molecules with these libraries.
RUN apt-get update \
    && apt-get install --no-install-recommends -y libexpat1 libxext6 libxrender1 \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/pairflow
COPY envs/requirements.txt envs/requirements.txt
RUN pip install --no-cache-dir --require-hashes --no-deps -r envs/requirements.txt
COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation .

# Only root may change the compiled kernels. A container copies them to a home of its own, which only its user can read
# and write, whoever that is (--user).
ENV USER=pairflow
RUN NUMBA_CACHE_DIR=/opt/numba python -m pairflow.pairing.compile_ahead && chmod -R u=rwX,go=rX /opt/numba
ENTRYPOINT ["sh", "-c", "export HOME=$(mktemp -d) && export NUMBA_CACHE_DIR=$HOME/numba && cp -r /opt/numba $NUMBA_CACHE_DIR && exec \"$@\"", "--"]
WORKDIR /project
CMD ["pairflow", "--help"]

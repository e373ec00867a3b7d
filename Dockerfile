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

# Compiled kernels and downloads go into a folder that every user may write to.
ENV HOME=/home/pairflow USER=pairflow NUMBA_CACHE_DIR=/home/pairflow/numba
RUN mkdir -p /home/pairflow/numba && python -m pairflow.pairing.compile_ahead && chmod -R a+rwX /home/pairflow
WORKDIR /project
CMD ["pairflow", "--help"]

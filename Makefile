SHELL := /bin/bash
.DEFAULT_GOAL := help

# npm's own record of an install: older than the lock file = install again.
INSTALLED := node_modules/.package-lock.json
DETECTION := bench/detection
PEERS := bench/peers
PAGE_PEERS := bench/page-peers
SDK_TYPES := services/web/server-sdk/types
# They have packages of their own, which are installed when they are needed.
OWN_PACKAGES := $(DETECTION) $(PEERS) $(PAGE_PEERS) $(SDK_TYPES)

.PHONY: help install hooks run run-kafka up test test-ci test-all faults watch bench bench-history page-cost eval replay sdk-types pack sbom format clean

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(INSTALLED)

$(INSTALLED): package.json package-lock.json
	npm ci --no-audit --no-fund
	@# npm before 11.6 removes the link to Node when it leaves out the packages of other platforms.
	@cd node_modules/.bin && { [ -e node ] || ln -s ../node-*/bin/node node; }
	@touch $(INSTALLED)
	@[ -n "$$CI" ] || [ "$$(git config core.hooksPath)" = .githooks ] || echo 'Checks before each commit: make hooks'

hooks: install ## Check each commit: lint, types, length of the subject
	git config core.hooksPath .githooks

run: install ## Start everything on this machine: Postgres, the log, every role
	@npm run --silent tidegate -- dev

run-kafka: install ## The same on a Kafka that it brings along: Java 17, and Maven the first time
	@npm run --silent run-kafka

up: ## Start everything in containers: Postgres, Kafka, one for each role
	@infra/deploy/make-secrets
	docker compose -f infra/deploy/compose.yaml up --build --detach --wait

test: install ## Lint, types and every test file that is not long, Kafka and Chromium included
	npm run --silent lint
	npm run --silent types
	npm run --silent test

test-ci: install ## What CI runs: `make test`, a long file for each promise, and a seventh of the others by day
	npm run --silent lint
	npm run --silent types
	npm run --silent test:ci

test-all: install ## Every test: servers killed at random, thousands of events, both logs
	npm run --silent lint
	npm run --silent types
	npm run --silent test:all

faults: install ## Break brokers, Postgres, networks and processes under load; writes docs/reports/reliability.md
	npm run --silent faults

watch: install ## Unit tests, again on each change
	npm run --silent watch

bench: install $(PEERS)/node_modules/.package-lock.json ## Measure against floors and other packages; writes docs/reports/performance.md
	npm run --silent bench

bench-history: install ## Measure the console's requests over ten million sessions; writes docs/reports/performance.md
	npm run --silent bench-history

page-cost: install $(PAGE_PEERS)/node_modules/.package-lock.json ## Measure what the browser SDK costs a page, in turns with FingerprintJS and BotD
	npm run --silent page-cost -- $(ARGS)

eval: install $(DETECTION)/node_modules/.package-lock.json $(DETECTION)/.venv/installed ## Measure detection with real browsers; ARGS='--only chromium' for some
	npm run --silent eval -- $(ARGS)

replay: install ## Measure how visitors are known again; writes the last part of docs/reports/detection.md
	npm run --silent replay

$(OWN_PACKAGES:%=%/node_modules/.package-lock.json): %/node_modules/.package-lock.json: %/package.json %/package-lock.json
	cd $* && npm ci --no-audit --no-fund
	@touch $@

$(DETECTION)/.venv/installed: $(DETECTION)/requirements.txt
	python3 -m venv $(DETECTION)/.venv
	$(DETECTION)/.venv/bin/pip install --quiet -r $<
	@touch $@

sdk-types: install $(SDK_TYPES)/node_modules/.package-lock.json ## Write the types of @tidegate/server from /openapi.json of a running make run
	curl --fail --silent --show-error http://127.0.0.1:8787/openapi.json | npm run --silent sdk-types

pack: install ## Write the npm packages tidegate, @tidegate/browser and @tidegate/server into dist/
	npm run --silent pack

sbom: install ## Write dist/sbom.cdx.json, a CycloneDX SBOM of what production needs, from the lock file
	@mkdir -p dist
	npm run --silent sbom > dist/sbom.cdx.json

format: install ## Format and fix what can be fixed
	npm run --silent format

clean: ## Remove what install, run and test made
	rm -rf node_modules dist .tidegate .cache $(DETECTION)/.venv $(OWN_PACKAGES:%=%/node_modules)

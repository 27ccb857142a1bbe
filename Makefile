# Needs Node.js 20 or newer and npm; the pinned Node.js 24 and everything else comes with the installation.

.PHONY: serve demo test test-upstream test-cluster check bench soak conformance

# Serves on the embedded database in ./placement-data, at http://127.0.0.1:8778; make serve ARGS='--port 8801', or ARGS=--help.
serve: node_modules
	@npm start --silent -- $(ARGS)

# Serves a demo fleet from memory in which consumers come and go, and prints the address of its console; make demo ARGS='--hosts 10000'.
demo: node_modules
	@npm run --silent demo -- $(ARGS)

# Tests on the embedded database and on a real PostgreSQL, which an npm package brings; make test ARGS=test/query for some of them.
test: node_modules
	@npm test --silent -- $(ARGS)

# Tests moving from the real OpenStack Placement, and its client, with what apt-get installs of Debian (as root, where it is missing).
test-upstream: node_modules
	@npm run --silent test:upstream

# Breaks a real cluster (Patroni, etcd, HAProxy, PgBouncer of Debian, as root) under load: ARGS='switchover' for some of the faults.
test-cluster: node_modules
	@npm run --silent test:cluster -- $(ARGS)

# Types, lint, formatting.
check: node_modules
	@npm run --silent check

# Measures the service on both databases: make bench ARGS='--quick', or ARGS=--help for what else it measures.
bench: node_modules
	@npm run --silent bench -- $(ARGS)

# Random work under random faults, with every answer checked: make soak HOURS=0.17 [ARGS='--seed 1 --engine postgresql']
soak: node_modules
	@npm run --silent soak -- --hours $(or $(HOURS),1) $(ARGS)

# Runs the gabbi files of any folder on both databases: make conformance GABBITS=path [ARGS='--only NAME --verbose']
conformance: node_modules
	@npm run --silent conformance -- --engine both $(ARGS) $(GABBITS)

# By the lock file, which it leaves as it is. Not `npm ci`, which begins by removing what a service that runs may still read.
node_modules: package.json package-lock.json
	@npm install --no-save --no-audit --no-fund --loglevel=error
	@touch node_modules

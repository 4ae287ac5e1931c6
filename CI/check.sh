#!/usr/bin/env bash
# The whole check; .ci/run and the workflows call this.
set -euo pipefail
cd "$(dirname "$0")/.."
make lint
make test

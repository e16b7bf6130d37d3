#!/bin/sh
# Look for known vulnerabilities that code of ours reaches: deploy/vulncheck.sh database module...
# The status is 0 when there are none, 3 when there are some, and 1 when the search failed.
set -u
version=v1.8.0
database=$1
shift
output=$(mktemp)
trap 'rm -f "$output"' EXIT
status=0
for module in "$@"; do
	echo "vulncheck: $module"
	found=0
	(cd "$module" && go run "golang.org/x/vuln/cmd/govulncheck@$version" -db "$database" ./...) >"$output" 2>&1 || found=$?
	cat "$output"
	if [ "$found" -eq 0 ]; then
		continue
	fi
	if grep -q '^Vulnerability #' "$output"; then # go run has one status for every failure
		status=3
		continue
	fi
	echo "vulncheck: the search failed: nothing is known about $module." >&2
	if grep -qE 'fetching vulnerabilities|no such host|connection refused|i/o timeout' "$output"; then
		echo "vulncheck: the database $database cannot be reached. Run this where it can, or name a mirror: make vulncheck VULNDB=file:///path" >&2
	fi
	exit 1
done
[ "$status" -eq 0 ] && echo "vulncheck: no known vulnerability is reached"
exit "$status"

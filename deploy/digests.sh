#!/bin/sh
# Write the digest of every image that docker-compose.yml and the Dockerfile name to
# deploy/images.lock, a line each: image@sha256:…. Registries are asked through docker or crane.
# If one cannot be reached, nothing is written and the status is 1.
set -eu
cd "$(dirname "$0")/.."
lock=${1:-deploy/images.lock}

# distroless has no tags of versions; its tag is asked for today's digest.
images=$({
	sed -n 's/^ *image: *\([^ #]*\).*/\1/p' docker-compose.yml
	sed -n 's/^FROM  *\([^ ]*\).*/\1/p' Dockerfile
} | sed 's/@sha256:.*//' | sort -u)

if command -v crane >/dev/null; then
	digest() { crane digest "$1"; }
elif command -v docker >/dev/null && docker buildx version >/dev/null 2>&1; then
	digest() { docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1"; }
else
	echo "digests: neither crane nor docker with buildx is installed: registries cannot be asked" >&2
	exit 1
fi

written=$(mktemp)
trap 'rm -f "$written"' EXIT
for image in $images; do
	if ! found=$(digest "$image"); then
		echo "digests: the registry of $image did not answer: $lock is left as it is" >&2
		exit 1
	fi
	case $found in
	sha256:*) echo "$image@$found" >>"$written" ;;
	*)
		echo "digests: the registry of $image answered no digest, but: $found" >&2
		exit 1
		;;
	esac
done
cat "$written" >"$lock"
echo "digests: $(wc -l <"$lock") images in $lock"

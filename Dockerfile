# cgo is on for libsecp256k1: checking a signature takes a quarter of the time.
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG VERSION=unreleased
ARG GIT_SHA=
ARG BUILD_TIMESTAMP=
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    mkdir /programs /data \
    && CGO_ENABLED=1 go build -trimpath -o /programs/ \
      -ldflags "-s -w -X main.version=${VERSION} -X main.gitSHA=${GIT_SHA} -X main.buildTimestamp=${BUILD_TIMESTAMP}" \
      ./cmd/watchtower ./cmd/relayer

# distroless has no tags of versions: the digest is the version. make digests prints the one of today.
# The relayer, which signs: docker build --target relayer.
FROM gcr.io/distroless/base-debian12:nonroot@sha256:7f0c72cd138b442ae0deeb69c08b1acf5525439ba251a49ad93c320a061567e5 AS relayer
COPY --from=build /programs/relayer /usr/local/bin/relayer
COPY LICENSE NOTICE /usr/share/doc/relayer/
COPY --from=build --chown=nonroot:nonroot /data /var/lib/relayer
VOLUME /var/lib/relayer
WORKDIR /var/lib/relayer
ENV WATCHTOWER_LISTEN=0.0.0.0:8420 \
    WATCHTOWER_METRICS_LISTEN=0.0.0.0:8421 \
    WATCHTOWER_RELAY_LISTEN=0.0.0.0:8422 \
    WATCHTOWER_STORE=embedded:/var/lib/relayer \
    WATCHTOWER_VAULT_KEY_FILE=/var/lib/relayer/vault.key
EXPOSE 8420 8421 8422
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["/usr/local/bin/relayer", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/relayer"]
CMD ["serve"]

# The watchtower, which has no code that signs, and is what is built if no target is named.
# base has the C library that cgo needs, and neither a shell nor a package manager.
FROM gcr.io/distroless/base-debian12:nonroot@sha256:7f0c72cd138b442ae0deeb69c08b1acf5525439ba251a49ad93c320a061567e5 AS watchtower
COPY --from=build /programs/watchtower /usr/local/bin/watchtower
COPY LICENSE NOTICE /usr/share/doc/watchtower/
# The embedded store and the vault's key: keep this volume.
COPY --from=build --chown=nonroot:nonroot /data /var/lib/watchtower
VOLUME /var/lib/watchtower
WORKDIR /var/lib/watchtower
# Beyond loopback the API takes API keys (keys create) or WATCHTOWER_OPEN_ACCESS=true.
ENV WATCHTOWER_LISTEN=0.0.0.0:8420 \
    WATCHTOWER_METRICS_LISTEN=0.0.0.0:8421 \
    WATCHTOWER_STORE=embedded:/var/lib/watchtower \
    WATCHTOWER_VAULT_KEY_FILE=/var/lib/watchtower/vault.key
EXPOSE 8420 8421
HEALTHCHECK --interval=10s --timeout=6s --start-period=30s CMD ["/usr/local/bin/watchtower", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/watchtower"]
CMD ["serve"]
